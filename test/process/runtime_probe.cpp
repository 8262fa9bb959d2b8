// SPDX-License-Identifier: Apache-2.0
// A program that ends in the way that its first argument names. check_run.cmake checks it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include <tessera/base/region.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/share_text.hpp>
#include <tessera/process/stop_signals.hpp>
#include <tessera/process/threads.hpp>

namespace {

using tessera::Error;
using tessera::ExitCode;
using tessera::Runtime;

ExitCode print_info(Runtime& runtime, int argc, char** argv) {
  const nlohmann::json provenance = tessera::collect_provenance(runtime);
  if (runtime.world_rank() != 0) return ExitCode::ok;
  std::cout << tessera::provenance_text(provenance);
  std::cout << "world " << runtime.world_size() << " json " << provenance["world_size"] << " left";
  for (int i = 2; i < argc; ++i) std::cout << ' ' << argv[i];
  std::cout << '\n';
  return ExitCode::ok;
}

ExitCode fail_alone(Runtime& runtime) {
  if (runtime.world_rank() == runtime.world_size() - 1) throw std::runtime_error("disk full");
  return ExitCode::ok;
}

ExitCode print_gpus(Runtime& runtime) {
  const std::optional<tessera::Gpu> own = tessera::own_gpu();
  const std::vector<std::string> all =
      tessera::gather_texts(MPI_COMM_WORLD, own ? own->name : "none");
  if (runtime.world_rank() != 0) return ExitCode::ok;
  std::cout << "GPUs";
  for (const std::string& gpu : all) std::cout << ' ' << gpu;
  std::cout << '\n';
  return ExitCode::ok;
}

// The other ranks wait for a message of the failed rank.
ExitCode fail_while_others_wait(Runtime& runtime) {
  const int last = runtime.world_size() - 1;
  if (runtime.world_rank() == last) throw Error(ExitCode::communication, "lost");
  int message = 0;
  MPI_Recv(&message, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return ExitCode::ok;
}

// MPI and Kokkos of the caller outlive the runtime, which can start again.
int leave_callers_libraries(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  for (int i = 0; i < 2; ++i) Runtime(argc, argv);
  int finalized = 0;
  MPI_Finalized(&finalized);
  const bool left_alone = finalized == 0 && Kokkos::is_initialized();
  Kokkos::finalize();
  MPI_Finalize();
  return left_alone ? 0 : 1;
}

// Signals itself: the first one is recorded, a copy of it ignored, the second one ends the process.
ExitCode end_by_second_signal(const std::string& first, const std::string& second) {
  using namespace std::chrono_literals;
  const std::map<std::string, int> numbers{{"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"INT", SIGINT}};
  std::signal(SIGINT, SIG_DFL);  // it may be ignored in a background job
  const tessera::StopSignals signals;
  kill(getpid(), numbers.at(first));
  while (!signals.arrived()) std::this_thread::yield();  // another thread receives it
  kill(getpid(), numbers.at(first));
  std::this_thread::sleep_for(400ms);
  kill(getpid(), numbers.at(second));
  std::this_thread::sleep_for(50s);
  return ExitCode::timeout;
}

int start_after_mpi(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return tessera::run_main(argc, argv, [](Runtime&) { return ExitCode::ok; });
}

// If threads are bound, each one may run on the processors of one core only.
ExitCode check_bound(Runtime&) {
  const Kokkos::DefaultHostExecutionSpace host;
  if (host.concurrency() == 1) return ExitCode::ok;
  std::size_t largest_core = 0;
  for (const auto& [core, processors] : tessera::own_cores())
    largest_core = std::max(largest_core, processors.size());
  std::vector<std::size_t> counts(host.concurrency());
  Kokkos::parallel_for(Kokkos::RangePolicy(host, 0, host.concurrency()), [&](std::size_t i) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    counts[i] = CPU_COUNT(&set);
  });
  return std::ranges::max(counts) <= largest_core ? ExitCode::ok : ExitCode::wrong_result;
}

// A wait of Kokkos for all streams would hold up the calls of NCCL.
ExitCode listen_to_regions(Runtime&) {
  if (Kokkos::Tools::profileLibraryLoaded()) return ExitCode::wrong_result;
  static int waits = 0;
  Kokkos::Tools::Experimental::set_push_region_callback([](const char*) {});
  Kokkos::Tools::Experimental::set_begin_fence_callback(
      [](const char*, std::uint32_t, std::uint64_t*) { ++waits; });
  const tessera::Region region("probe::region");
  return waits == 0 ? ExitCode::ok : ExitCode::wrong_result;
}

// All ranks may run on the first processor alone.
int share_a_core(int argc, char** argv) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int first = 0;
  while (!CPU_ISSET(first, &set)) ++first;
  CPU_ZERO(&set);
  CPU_SET(first, &set);
  sched_setaffinity(0, sizeof set, &set);
  return tessera::run_main(argc, argv, [](Runtime&) { return ExitCode::ok; });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  if (scenario == "leave") return leave_callers_libraries(argc, argv);
  if (scenario == "one-core") return share_a_core(argc, argv);
  if (scenario == "after-mpi") return start_after_mpi(argc, argv);
  const std::map<std::string, std::function<ExitCode(Runtime&)>> scenarios = {
      {"info", [&](Runtime& runtime) { return print_info(runtime, argc, argv); }},
      {"gpus", print_gpus},
      {"bound", check_bound},
      {"regions", listen_to_regions},
      {"bad-input",
       [](Runtime&) -> ExitCode { throw tessera::ConfigError("epochs", "0", "must be positive"); }},
      {"alone", fail_alone},
      {"others-wait", fail_while_others_wait},
      {"wrong-result", [](Runtime&) { return ExitCode::wrong_result; }},
      {"stop", [&](Runtime&) { return end_by_second_signal(argv[2], argv[3]); }},
      {"abort", [](Runtime&) -> ExitCode { tessera::abort_job(ExitCode::timeout); }},
      {"abort-record",
       [](Runtime&) -> ExitCode {
         tessera::observe_abort([](ExitCode code, const std::string& reason) {
           std::cout << "ended with " << static_cast<int>(code) << ": " << reason << std::endl;
         });
         tessera::abort_job(ExitCode::timeout, "too late");
       }},
  };
  return tessera::run_main(argc, argv, scenarios.at(scenario),
                           scenario == "others-wait" ? 0.5 : 30);
}
