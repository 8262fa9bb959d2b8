// SPDX-License-Identifier: Apache-2.0
// A machine, described by the dozen numbers that determine the time of a step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/predict/simulate.hpp>

namespace tessera {

/// A level of the network: one kind of link connects the ranks of a node, of a rack or of the
/// machine. Levels are nested, and consecutive ranks share the inner levels.
struct NetworkLevel {
  std::string name;
  Size ranks = 1;  ///< ranks that the level connects: a multiple of those of the inner level
  double latency_seconds = 0;  ///< latency of a message
  /// Bandwidth of a link in each direction. On the first level, each rank has a link. On a higher
  /// level, the ranks of one block of the inner level share a link out of the block.
  double bytes_per_second = 0;
  /// Extra time of a message that is longer than 4 KiB, because sender and receiver synchronize
  /// first (LogGPS: Ino, Fujimoto, Hagihara 2001).
  double rendezvous_seconds = 0;
};

/// Returns the seconds of a call of `n` ranks over the links of one level ("Cost of a call" in
/// README.md). `bytes` is the payload.
double call_seconds(const NetworkLevel& level, Operation operation, Size n, double bytes);

/// A level of the caches. Kernels reach its rate if all that a step uses fits into it.
struct CacheLevel {
  Size bytes = 0;  ///< of a rank
  double bytes_per_second = 0;
};

/// A machine, as a machine file describes it.
struct Machine {
  std::string name;
  Device device = this_device;  ///< of a rank
  Size threads = 0;             ///< of a rank; 0: not told
  /// Files, beside that of this machine, that describe ranks of other numbers of threads.
  std::vector<std::string> thread_files{};
  std::vector<Machine> others{};  ///< which those files describe
  /// FLOP/s that the matrix products of a rank reach, by the name of the type of their operands;
  /// "tf32" for float32 operands rounded to TF32.
  std::map<std::string, double> flops_per_second;
  std::map<std::string, double> peak_flops_per_second{};  ///< that the vendor states, by type
  /// 16-bit types whose products the machine emulates: it widens their operands to float32.
  std::vector<std::string> emulated_products{};
  double memory_bytes_per_second = 0;  ///< memory bandwidth that the kernels of a rank reach
  Size memory_bytes = 0;               ///< device memory of a rank
  double kernel_seconds = 0;           ///< overhead of each kernel
  double overlap = 1;                  ///< fraction of a started call that computation can hide
  /// The same for one sort of calls: "messages" of stages and rings, "gradients", and "gathers" of
  /// parameters. `overlap` holds for those that are missing.
  std::map<std::string, double> overlaps{};
  /// The fraction of the shorter of two times, the arithmetic and the memory traffic of a product,
  /// that the longer one hides. A BLAS that packs operands before it multiplies hides little. Other
  /// kernels hide all of it.
  double product_overlap = 1;
  std::vector<NetworkLevel> network;  ///< from the innermost level to the outermost
  std::vector<CacheLevel> caches{};   ///< from the smallest to the largest
  double function_seconds = 0;        ///< time of an exponential function in a long loop of a rank
  /// The part of `flops_per_second` that products reach, by the harmonic mean of their sides.
  /// Between two means it is linear in their logarithm, beyond them constant.
  std::map<Size, double> side_efficiency{};
  Software software{};

  /// Returns the bytes per second of kernels that use `bytes` in turn: the rate of the smallest
  /// cache that holds them, or of memory. Up to twice the bytes of a cache, they find a part of
  /// them in it: the rate is linear in log(bytes).
  double memory_rate(Size bytes) const;
  /// Returns what plans must know about the machine.
  DeviceTraits traits() const;
  /// Returns the highest rate of kernels that use at least `bytes`.
  double highest_rate(Size bytes) const;
  /// Returns how many times as long as at the full rate a product with this mean of its sides
  /// takes.
  double slowdown(Size side) const;
  /// Returns the fraction of a started call that computation can hide.
  double hidden(Operation operation) const;
  /// Returns the machine with ranks of so many threads; 0 stands for `threads`. Null if no file
  /// describes it.
  const Machine* find_threads(Size wanted) const;
  /// The same. Throws ConfigError in place of null.
  const Machine& of_threads(Size wanted) const;
  /// Returns the number of ranks of the machine.
  Size ranks() const { return network.empty() ? 1 : network.back().ranks; }
};

/// Returns the FLOP/s of a rank's matrix products in the types of `input`. Throws ConfigError if
/// the machine has no rate for these types or fewer ranks than the mesh.
double product_rate(const Machine& machine, const PlanInput& input);
/// Returns the vendor's peak for these types; none if the machine file does not tell it.
std::optional<double> peak_rate(const Machine& machine, const PlanInput& input);

/// Returns the cost of a kernel at these rates of products and of memory.
Cost cost_of_kernel(const Machine& machine, const Work& work, double flops_per_second,
                    double bytes_per_second);

/// Throws Error (usage) unless the ranks of the machine are such devices.
void check_device(const Machine& machine, Device device);

/// Returns the cost of the plan's work on a machine: "Cost of a kernel" in README.md, with the
/// bandwidth for what a step of rank 0 uses. A collective takes call_seconds() with the largest
/// latency of the levels that it crosses and the bandwidth of the slowest link on a ring of its
/// ranks. All groups of an axis call at the same time, and groups that use the same link share its
/// bandwidth; the call is priced like that of the slowest group. Throws as product_rate() and
/// check_device() do.
CostOf cost_on(const Machine& machine, const Plan& plan);

/// Simulates a step with cost_on() and Machine::software. Throws Error (usage) also if the step
/// takes no time or for ever.
SimulatedStep simulate(const Plan& plan, const Machine& machine);

}  // namespace tessera
