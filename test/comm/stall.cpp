// SPDX-License-Identifier: Apache-2.0
//
// Stalls on purpose: tessera_stall CASE THREAD_LEVEL TIME_LIMIT. Rank 2 is the culprit.
#include <chrono>
#include <cstdlib>
#include <signal.h>
#include <string_view>
#include <thread>

#include <mpi.h>

#include <tessera/comm/communicator.hpp>

using tessera::Communicator;
using tessera::Vector;

namespace {

void compute() { std::this_thread::sleep_for(std::chrono::seconds(60)); }

void run(std::string_view what, const Communicator& world, double limit) {
  const bool culprit = world.rank() == 2;
  Vector<float> v("v", 10);
  world.broadcast(v, 0);
  if (what == "computing") {
    if (culprit) compute();
    world.all_reduce(v);
  } else if (what == "ended") {
    if (!culprit) world.all_reduce(v);
  } else if (what == "elsewhere") {
    if (culprit) world.barrier();
    world.all_reduce(v);
  } else if (what == "axis") {
    const Communicator pair = world.split(world.rank() / 2, 0, "model");
    if (culprit) compute();
    if (world.rank() >= 2) pair.all_reduce(v);
  } else if (what == "stopped") {
    if (culprit) raise(SIGSTOP);
    world.all_reduce(v);
  } else if (what == "stopped_at_end") {
    if (culprit) raise(SIGSTOP);
  } else if (what == "receive") {
    if (world.rank() == 0) world.receive(v, 2, 7);
  } else if (what == "request") {
    if (culprit) compute();
    world.iall_reduce(v).wait();
  } else if (what == "dropped") {
    if (!culprit) static_cast<void>(world.iall_reduce(v));
    compute();
  } else if (what == "late") {
    // Each call, and the end, is slow, but not stalled. Together they take longer than the limit.
    for (int i = 0; i < 5; ++i) {
      if (culprit) std::this_thread::sleep_for(std::chrono::duration<double>(limit / 4));
      world.all_reduce(v);
    }
    if (culprit) std::this_thread::sleep_for(std::chrono::milliseconds(1800));
  } else {
    std::_Exit(99);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 98;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, std::atoi(argv[2]), &provided);
  {
    Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings().set_disable_warnings(true));
    tessera::CommOptions options;
    options.timeout_seconds = std::atof(argv[3]);
    options.check_collectives = false;
    run(argv[1], Communicator::world(options), options.timeout_seconds);
  }
  MPI_Finalize();
  return 0;
}
