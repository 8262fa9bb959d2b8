// SPDX-License-Identifier: Apache-2.0
// What another communicator of an axis costs: time to make it, and host memory.
#include <fstream>
#include <malloc.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "measure/slowest.hpp"
#include "micro/micro.hpp"

namespace tessera::bench {
namespace {

/// Memory of this process that is there now, with what it shares with others, and without what the
/// C library keeps for later.
double resident_bytes() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  Size all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

/// A communicator of the same ranks that has been used once.
Communicator made_of(const Communicator& ranks) {
  Communicator made = ranks.split(0, ranks.rank(), ranks.axis());
  const Kokkos::View<std::int64_t[1], Kokkos::HostSpace> one("tessera::bench::one");
  made.all_reduce(one);
  return made;
}

/// The memory is the mean over some that are there at a time, behind a first one, on the rank of
/// `all` where it is the most.
MicroCase communicator(const Communicator& all, const Communicator& ranks) {
  constexpr Size number = 32;
  std::vector<Communicator> made{made_of(ranks)};
  const double before = resident_bytes();
  for (Size i = 0; i < number; ++i) made.push_back(made_of(ranks));
  const double after = resident_bytes();
  const std::vector<double> most = slowest(all, {(after - before) / number, after});
  const auto bytes = [&](std::size_t i) { return human_bytes(static_cast<Size>(most[i])); };
  return {.work = [ranks] { made_of(ranks); },
          .label = fmt::format("{} each; process: {}", bytes(0), bytes(1))};
}

}  // namespace

void add_communicator_benchmarks(MicroContext& context) {
  const Mesh& mesh = context.mesh();
  for (const Axis& axis : mesh.shape().axes())
    if (axis.size > 1)
      context.add(fmt::format("communicator/axis:{}/ranks:{}", axis.name, axis.size),
                  [world = mesh.world(), ranks = mesh.axis(axis.name)] {
                    return communicator(world, ranks);
                  });
}

}  // namespace tessera::bench
