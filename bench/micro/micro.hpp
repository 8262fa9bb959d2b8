// SPDX-License-Identifier: Apache-2.0
// Google Benchmark under MPI: every rank runs the same benchmarks as often, and rank 0 reports.
#pragma once

#include <benchmark/benchmark.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/tensor/mesh.hpp>

#include "measure/machine_speed.hpp"

namespace tessera::bench {

struct MicroOptions {
  Size iterations = 20;
  std::vector<Size> widths{1024, 4096, 4096, 1024};  ///< layers of the measured network
  Size batch = 1024;                                 ///< rows per rank
  std::string mesh = "data=-1";
  /// Full logical buffers of collectives: 1 KiB to 64 MiB.
  std::vector<Size> bytes{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18,
                          1 << 20, 1 << 22, 1 << 24, 1 << 26};
  int wrong_rank = -1;  ///< reports one wrong element in every checked result; -1: no rank does
};

/// Work of a kernel. A benchmark with it reports rates, and the least time by the roofline model
/// (Williams, Waterman, Patterson 2009) as a fraction of the measured time.
struct KernelWork {
  double flops = 0;  ///< of matrix products
  double bytes = 0;  ///< of operands that are read and written, each once
  GemmType type{};   ///< of the products
};

/// One benchmark. A repetition of `work` starts after a barrier, and its time is that of the
/// slowest rank of all, because the groups of an axis work at the same time.
struct MicroCase {
  std::function<void()> work{};
  std::optional<KernelWork> kernel{};
  /// Counters: the amount of work in a repetition, which is reported per second.
  std::vector<std::pair<std::string, double>> rates{};
  /// Optional: runs the work once and returns the number of wrong elements on this rank. A wrong
  /// element on any rank is an error of the benchmark.
  std::function<Size()> count_wrong{};
  std::string label{};  ///< the library that does the work, if the name does not say so
};

/// The ranks, and the benchmarks registered for them. The destructor removes the benchmarks, which
/// hold communicators.
class MicroContext {
 public:
  MicroContext(const MicroOptions& options, const Mesh& mesh) : options_(options), mesh_(mesh) {}
  MicroContext(const MicroContext&) = delete;
  MicroContext& operator=(const MicroContext&) = delete;
  ~MicroContext();

  const MicroOptions& options() const { return options_; }
  const Mesh& mesh() const { return mesh_; }

  /// Registers a benchmark. `make` is called when it runs, and its result is destroyed afterwards,
  /// so that memory is allocated for one benchmark at a time, and for none if names are listed.
  void add(const std::string& name, const std::function<MicroCase()>& make);

  /// Returns how many benchmarks ended with an error; the same on every rank.
  Size errors() const { return errors_; }

 private:
  void run(benchmark::State& state, const MicroCase& micro);

  /// Returns the least seconds of a kernel: its FLOPs at the rate of a large square product, or its
  /// bytes at the rate of a sweep through as many, whichever takes longer. Measures a rate at its
  /// first use. Collective.
  double least_seconds(const KernelWork& kernel);

  MicroOptions options_;
  Mesh mesh_;
  Machine machine_;  ///< with rates of memory, or none yet
  std::map<GemmType, double> product_rates_;
  Size errors_ = 0;
};

/// Returns a matrix of normally distributed numbers.
template <class T = float>
Matrix<T> drawn(Size rows, Size cols, std::uint64_t seed) {
  const auto made = allocate_matrix<T>("tessera::bench::operand", rows, cols);
  fill_normal(made, key(seed));
  return made;
}

void add_compute_benchmarks(MicroContext& context);
void add_layer_benchmarks(MicroContext& context);
void add_collective_benchmarks(MicroContext& context);

}  // namespace tessera::bench
