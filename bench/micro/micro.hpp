// SPDX-License-Identifier: Apache-2.0
// Google Benchmark under MPI: every rank runs the same benchmarks, as often, and rank 0 reports.
#pragma once

#include <benchmark/benchmark.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/mesh/mesh.hpp>

namespace tessera::bench {

struct MicroOptions {
  Size iterations = 20;
  std::vector<Size> widths{1024, 4096, 4096, 1024};  ///< of the network whose shapes are measured
  Size batch = 1024;                                 ///< rows on a rank
  std::string mesh = "data=-1";
  /// Full logical buffers of collectives: 1 KiB to 64 MiB.
  std::vector<Size> bytes{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18,
                          1 << 20, 1 << 22, 1 << 24, 1 << 26};
  std::string directory{};  ///< --directory: where checkpoints are timed; empty: they are not
  int wrong_rank = -1;      ///< --inject-wrong: finds one more wrong element in all that it checks
};

/// What a benchmark needs. `work` is repeated behind a barrier each, and its time is that of the
/// slowest rank of all: groups of an axis work side by side.
struct MicroCase {
  std::function<void()> work{};
  /// Counters, what a repetition does by name, reported per second.
  std::vector<std::pair<std::string, double>> rates{};
  /// Where something can be wrong: calls the work once, and tells how many elements this rank finds
  /// so. Any anywhere is an error of the benchmark.
  std::function<Size()> count_wrong{};
  std::string label{};  ///< what does the work, where the name leaves that open
};

/// An axis of several ranks, and the size of messages along it.
struct AxisPoint {
  std::size_t axis = 0;  ///< of the mesh
  Communicator ranks;    ///< of this rank's group
  /// The same ranks for MPI itself; none where memory is a device's: not every MPI takes that.
  std::shared_ptr<MpiHandle> raw{};
  Size bytes = 0;
};

/// The ranks and what to measure on them. Benchmarks refer to it and hold communicators,
/// so that their registration ends with it, also when something throws.
class MicroContext {
 public:
  MicroContext(const MicroOptions& options, const Mesh& mesh) : options_(options), mesh_(mesh) {}
  MicroContext(const MicroContext&) = delete;
  MicroContext& operator=(const MicroContext&) = delete;
  ~MicroContext();

  const MicroOptions& options() const { return options_; }
  const Mesh& mesh() const { return mesh_; }

  /// Every axis of several ranks with every size of messages. Collective.
  std::vector<AxisPoint> axis_points() const;

  /// Registers a benchmark by name. It is made when it runs, and gone after it: memory is there for
  /// one benchmark at a time, and for none if only names are asked for.
  void add(const std::string& name, const std::function<MicroCase()>& make);

  /// Benchmarks that ended with an error, on every rank alike.
  Size errors() const { return errors_; }

 private:
  void run(benchmark::State& state, const MicroCase& micro);

  MicroOptions options_;
  Mesh mesh_;
  Size errors_ = 0;
};

void add_compute_benchmarks(MicroContext& context);
void add_layer_benchmarks(MicroContext& context);
void add_collective_benchmarks(MicroContext& context);
void add_mesh_benchmarks(MicroContext& context);
void add_communicator_benchmarks(MicroContext& context);
/// None without a directory. Throws ConfigError where there is no HDF5.
void add_checkpoint_benchmarks(MicroContext& context);

}  // namespace tessera::bench
