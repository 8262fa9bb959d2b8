// SPDX-License-Identifier: Apache-2.0
#include "measure/slowest.hpp"

#include <algorithm>

namespace tessera::bench {

std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, ReduceOp::max);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

}  // namespace tessera::bench
