// SPDX-License-Identifier: Apache-2.0
// A training that resumes from the latest checkpoint of a directory, and ends at one point of a
// save: killed without any clean-up, or by SIGTERM.
// usage: tessera_crash DIRECTORY sync|async kill|term POINT TIMES RANK
// The rank ends when it reaches the point for the TIMES-th time. POINT "never" trains to the end.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/checkpoint/inspection.hpp>
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/process/stop_signals.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

constexpr int killed = 9;

/// Returns losses and parameters with all bits.
std::string end_of(const TrainingMetrics& metrics, const Vector<double>& parameters) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), parameters);
  std::string text;
  for (const double loss : metrics.epoch_losses) text += fmt::format("{:a} ", loss);
  for (std::size_t i = 0; i < host.extent(0); ++i) text += fmt::format("{:a} ", host(i));
  return text + "\n";
}

/// The arguments of the command line.
struct Crash {
  std::string directory, way, end, point;
  int times, rank;
};

ExitCode train(Runtime& runtime, const Crash& crash) {
  ModelConfig model;
  model.mlp.widths = {3, 7, 5, 2};
  model.dtype = DType::float64;
  TrainingConfig training;
  training.batch_size = 5;
  training.num_epochs = 6;
  training.distributed.strategy = Strategy::zero1;
  DataConfig data;
  data.kind = DataKind::random;
  data.samples = 13;
  data.shuffle = true;

  std::atomic<int> left = crash.times;
  const StopSignals signals;
  Checkpointing checkpointing;
  checkpointing.config = {
      .directory = crash.directory, .every_steps = 1, .keep = 2, .async = crash.way == "async"};
  checkpointing.wants_to_stop = [&] { return signals.arrived(); };
  checkpointing.observer = [&](SavePoint reached) {
    if (name_of(reached) != crash.point || runtime.world_rank() != crash.rank || --left != 0)
      return;
    if (crash.end == "kill") _exit(killed);
    kill(getpid(), SIGTERM);
    while (!signals.arrived()) std::this_thread::yield();  // another thread receives it
  };
  Trainer<double> trainer(model, training, {}, checkpointing);
  const Communicator& world = trainer.mesh().world();
  const std::string latest = broadcast_json(world, collectively(world, [&]() -> std::string {
                                              const auto all = trainings_in(crash.directory);
                                              if (all.empty()) return "";
                                              return newest_complete(all.front())->string();
                                            }));
  if (!latest.empty()) {
    verify_checkpoint(latest);
    trainer.resume(latest);
  }
  const TrainingMetrics metrics = trainer.fit(data);
  if (metrics.stopped) return ExitCode::stopped;
  const std::string end = end_of(metrics, trainer.gather());
  if (world.rank() == 0) print_output(end);
  return ExitCode::ok;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_main(argc, argv, [&](tessera::Runtime& runtime) {
    return tessera::train(
        runtime, {argv[1], argv[2], argv[3], argv[4], std::atoi(argv[5]), std::atoi(argv[6])});
  });
}
