// SPDX-License-Identifier: Apache-2.0
// Google Benchmark under MPI: every rank runs the same benchmarks, as often, and rank 0 reports.
#pragma once

#include <benchmark/benchmark.h>
#include <functional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera::bench {

struct MicroOptions {
  Size iterations = 20;
  std::vector<Size> widths{256, 1024, 1024, 256};  ///< of the network whose shapes are measured
  Size batch = 256;                                ///< rows on a rank
  std::string mesh = "data=-1";
  std::vector<Size> bytes{64, 4096, 262144, 4194304};  ///< full logical buffers of collectives
};

/// The ranks and what to measure on them. Benchmarks refer to it and hold memory of Kokkos and
/// communicators, so that their registration ends with it, also when something throws.
class MicroContext {
 public:
  MicroContext(const MicroOptions& options, const Mesh& mesh) : options_(options), mesh_(mesh) {}
  MicroContext(const MicroContext&) = delete;
  MicroContext& operator=(const MicroContext&) = delete;
  ~MicroContext();

  const MicroOptions& options() const { return options_; }
  const Mesh& mesh() const { return mesh_; }

  /// Registers `work` by name; it is repeated behind a barrier each, and its time is that of the
  /// slowest rank of all: groups of an axis work side by side. `rates`: counters, what a repetition
  /// does by name, reported per second.
  using Work = std::function<void()>;
  using Rates = std::vector<std::pair<std::string, double>>;
  void add(const std::string& name, const Work& work, const Rates& rates = {});
  /// The same for something that can be wrong: `count_wrong` tells after a first call how many
  /// elements this rank finds so. Any anywhere is an error of the benchmark.
  void add_checked(const std::string& name, const Work& work,
                   const std::function<Size()>& count_wrong, const Rates& rates);
  /// For work that takes its own times: `iterations` steps -> their seconds on this rank.
  void add_timed(const std::string& name,
                 const std::function<std::vector<double>(Size iterations)>& steps);

  /// Benchmarks that ended with an error, on every rank alike.
  Size errors() const { return errors_; }

 private:
  MicroOptions options_;
  Mesh mesh_;
  Size errors_ = 0;
};

void add_compute_benchmarks(MicroContext& context);
void add_collective_benchmarks(MicroContext& context);
void add_mesh_benchmarks(MicroContext& context);

}  // namespace tessera::bench
