// SPDX-License-Identifier: Apache-2.0
#include "measure/slowest.hpp"

#include <algorithm>

#include <tessera/base/timer.hpp>

namespace tessera::bench {

std::vector<double> repeat(const Communicator& ranks, Size warm_up, Size times,
                           const std::function<void()>& work) {
  for (Size i = 0; i < warm_up; ++i) work();
  Kokkos::fence();
  std::vector<double> seconds;
  for (Size i = 0; i < times; ++i) {
    ranks.barrier();
    const Timer timer;
    work();
    Kokkos::fence();
    seconds.push_back(timer.seconds());
  }
  return seconds;
}

std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, ReduceOp::max);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

}  // namespace tessera::bench
