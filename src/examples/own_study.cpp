// SPDX-License-Identifier: Apache-2.0
// A scaling study of a function of your own. One launch measures it on 1, 2, 4, ... and all ranks,
// for several sizes, and prints time, speed-up and efficiency. Put your function in place of
// `normalize`.
// usage: mpirun -n 4 own_study [elements...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tessera/base/for_each.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

// The function: divides a distributed vector by its norm.
void normalize(const Communicator& ranks, const Vector<double>& part) {
  const Kokkos::View<double, MemSpace> square("square");
  sum_each(
      "square", part.extent(0),
      KOKKOS_LAMBDA(const Size i, double& sum) { sum += part(i) * part(i); }, square);
  ranks.all_reduce(square);
  for_each(
      "divide", part.extent(0), KOKKOS_LAMBDA(const Size i) { part(i) /= Kokkos::sqrt(square()); });
}

// Returns the median time of a call in seconds. A call takes as long as its slowest rank, and the
// first calls, which start threads and connections, are not counted.
double median_seconds(const Communicator& ranks, Size elements) {
  constexpr int warm_calls = 3, calls = 21;
  const Range own = balanced_split(elements, ranks.size(), ranks.rank());
  const Vector<double> part("part", own.count);
  Kokkos::deep_copy(part, 2.0);
  const Kokkos::View<double[calls], Kokkos::HostSpace> seconds("seconds");
  for (int call = -warm_calls; call < calls; ++call) {
    ranks.barrier();
    const Timer timer;
    normalize(ranks, part);
    Kokkos::fence();
    if (call >= 0) seconds(call) = timer.seconds();
  }
  ranks.all_reduce(seconds, ReduceOp::max);
  std::nth_element(seconds.data(), seconds.data() + calls / 2, seconds.data() + calls);
  return seconds(calls / 2);
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Runtime&) {
    std::vector<Size> sizes;
    for (int i = 1; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
    if (sizes.empty()) sizes = {100000, 1000000};

    const Communicator world = Communicator::world();
    std::vector<int> counts;
    for (int ranks = 1; ranks < world.size(); ranks *= 2) counts.push_back(ranks);
    counts.push_back(world.size());

    if (world.rank() == 0)
      std::printf("%10s %6s %12s %9s %11s\n", "elements", "ranks", "time", "speed-up",
                  "efficiency");
    for (const Size elements : sizes) {
      double one_rank = 0;
      for (const int ranks : counts) {
        // The first ranks measure; the others wait, so that they do not compete for the machine.
        const bool measures = world.rank() < ranks;
        const Communicator group = world.split(measures ? 0 : 1, world.rank(), "study");
        const double seconds = measures ? median_seconds(group, elements) : 0;
        world.barrier();
        if (ranks == 1) one_rank = seconds;
        if (world.rank() == 0)
          std::printf("%10lld %6d %9.1f us %9.2f %9.0f %%\n", static_cast<long long>(elements),
                      ranks, 1e6 * seconds, one_rank / seconds, 100 * one_rank / seconds / ranks);
      }
    }
    return ExitCode::ok;
  });
}
