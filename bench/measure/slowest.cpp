// SPDX-License-Identifier: Apache-2.0
#include "measure/slowest.hpp"

#include <algorithm>

#include <tessera/base/timer.hpp>

namespace tessera::bench {
namespace {

std::vector<double> reduced(const Communicator& ranks, const std::vector<double>& mine,
                            ReduceOp op) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, op);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

}  // namespace

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
  return reduced(ranks, mine, ReduceOp::max);
}

std::vector<double> mean_over(const Communicator& ranks, const std::vector<double>& mine) {
  std::vector<double> seconds = reduced(ranks, mine, ReduceOp::sum);
  for (double& one : seconds) one /= ranks.size();
  return seconds;
}

}  // namespace tessera::bench
