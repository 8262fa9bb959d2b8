// SPDX-License-Identifier: Apache-2.0
// Measures how fast the machine is.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>
#include <tessera/predict/machine.hpp>
#include <tessera/tensor/topology.hpp>

#include "document/document.hpp"

namespace tessera::bench {

/// Runs `work` `warm_up` times untimed, then `times` times, each after a barrier. Returns the
/// seconds of each run on this rank. Collective.
std::vector<double> repeat(const Communicator& ranks, Size warm_up, Size times,
                           const std::function<void()>& work);

/// Returns the seconds of the slowest rank for each repetition. Collective.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine);

/// The type of a product. The precision is TF32 only if the device computes it, faster than
/// float32. Otherwise Gemm rounds the operands itself, and the peak does not include that.
struct GemmType {
  DType operands = DType::float32;
  MatmulPrecision precision = MatmulPrecision::strict;

  auto operator<=>(const GemmType&) const = default;
};
GemmType gemm_type(const Config& config);

/// Returns the FLOP/s of a square product of `gemm_size` rows on the slowest rank, in the best of
/// some repetitions. MFU is relative to it. Collective over `ranks`.
double gemm_peak(const Communicator& ranks, const GemmType& type, Size gemm_size, Size repetitions);

// Fixed kernels measure the speed of the machine beside every block of steps, on the same ranks. A
// shared machine changes its speed within seconds and minutes.

/// Seconds of the fixed kernels on the slowest rank, with all ranks busy.
struct MachineSpeed {
  double product_seconds = 0;  ///< which no library computes
  double memory_seconds = 0;   ///< larger than most caches

  static void fields(auto& f, auto& v) {
    f("product_seconds", v.product_seconds, "of a small matrix product", positive);
    f("memory_seconds", v.memory_seconds, "of a sweep through memory", positive);
  }
};
inline MachineSpeed mean(const MachineSpeed& a, const MachineSpeed& b) {
  return {(a.product_seconds + b.product_seconds) / 2, (a.memory_seconds + b.memory_seconds) / 2};
}

/// The kernels and their memory on this rank.
class MachineProbe {
 public:
  MachineProbe();
  /// Collective over `ranks`.
  MachineSpeed measure(const Communicator& ranks) const;

 private:
  Matrix<float> a_, b_, c_;
  Vector<float> from_, to_;
};

/// Measures the rates of memory and caches of `machine`, all ranks busy. Collective over `ranks`.
void measure_memory(const Communicator& ranks, Machine& machine);

/// Measures the numbers of a machine file on these ranks, all of them busy: a sweep through memory,
/// the smallest kernel on all threads, narrow products, products of blocks, products with weights
/// from memory, an all-reduce beside a product, and short all-reduces for latencies. Within a node
/// the rate is that of long all-reduces. The link of a node has the rate of long messages in both
/// directions, or with NCCL, which carries none, of all-reduces. A single rank has no network. If
/// nodes have different numbers of ranks, one level connects all ranks. The rates of products of
/// `gemm_size` rows are measured for `types`, by name, and float32. Collective over `ranks`.
Machine measure_machine(const Communicator& ranks, const std::vector<Size>& node_of_rank,
                        const BackendFacts& facts, Size gemm_size,
                        std::map<std::string, GemmType> types);

/// Returns the median of each number over measurements of one machine, an odd number of them. A
/// cache counts if most of them found it.
Machine typical_machine(const std::vector<Machine>& measured);

/// Returns the rate of a transfer that takes `seconds`, including an `overhead` that does not
/// depend on its bytes. The two times are measured apart, and on a busy machine the overhead may
/// come out longer; at most half of the seconds count as overhead, so the rate is positive.
double rate_beyond(double bytes, double seconds, double overhead);

}  // namespace tessera::bench
