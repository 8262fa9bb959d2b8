// SPDX-License-Identifier: Apache-2.0
#include "measure/measure.hpp"

#include <algorithm>

#include "measure/statistics.hpp"

namespace tessera::bench {

std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, ReduceOp::max);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

Summary summarize(const std::vector<double>& seconds) {
  Summary summary;
  summary.min = *std::min_element(seconds.begin(), seconds.end());
  summary.median = median(seconds);
  summary.mad = median_absolute_deviation(seconds);
  return summary;
}

std::vector<Summary> measure_in_turn(const Communicator& ranks, const Repeats& repeats,
                                     const std::vector<Work>& works) {
  std::vector<std::vector<double>> seconds(works.size());
  for (Size i = 0; i < repeats.warm_up + repeats.counted; ++i) {
    for (std::size_t w = 0; w < works.size(); ++w) {
      ranks.barrier();
      const double took = works[w]();
      if (i >= repeats.warm_up) seconds[w].push_back(took);
    }
  }
  std::vector<Summary> summaries;
  for (const std::vector<double>& mine : seconds)
    summaries.push_back(summarize(slowest(ranks, mine)));
  return summaries;
}

}  // namespace tessera::bench
