// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <mpi.h>

#include "statistics.hpp"

namespace tessera::bench {
namespace {

/// For each repetition the time of the slowest rank.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, ReduceOp::max);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

}  // namespace

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

void on_first_rank(const Communicator& world, const std::function<void()>& work) {
  if (world.rank() == 0) work();
  // A barrier of the communicator would spin, and its watchdog might find it long.
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &arrived);
  for (int all = 0; !all; MPI_Test(&arrived, &all, MPI_STATUS_IGNORE))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace tessera::bench
