// SPDX-License-Identifier: Apache-2.0
// A machine described by the dozen numbers that the time of a step depends on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/predict/simulate.hpp>

namespace tessera {

/// Ranks that one kind of link connects: those of a node, a rack or the machine. Levels are nested,
/// and neighbouring ranks share the inner ones.
struct NetworkLevel {
  std::string name;
  Size ranks = 1;  ///< ranks that the level connects: a multiple of those of the inner level
  double latency_seconds = 0;  ///< latency of a message
  /// Bandwidth in each direction of the link out of a rank or, from the second level on, out of a
  /// group of the inner level, whose ranks share it.
  double bytes_per_second = 0;
  /// Seconds that are added to a message longer than eager_bytes, because sender and receiver
  /// synchronize first (LogGPS: Ino, Fujimoto, Hagihara 2001).
  double rendezvous_seconds = 0;
  Size eager_bytes = 4096;
};

/// Returns the seconds of a collective of `n` ranks over such links: latencies of its rounds plus
/// bytes over bandwidth, by recursive doubling and halving. An all-reduce takes the shorter of two
/// algorithms: all bytes in each of ceil(log2 n) rounds, or the fewest bytes in twice as many
/// rounds (Thakur, Rabenseifner, Gropp 2005).
double call_seconds(const NetworkLevel& level, Operation operation, Size n, double bytes);

struct Machine {
  std::string name;
  /// FLOP/s that products of a rank reach, by the type of their operands; "tf32" for float32
  /// rounded to TF32.
  std::map<std::string, double> flops_per_second;
  double memory_bytes_per_second = 0;  ///< bandwidth that kernels of a rank reach
  Size memory_bytes = 0;               ///< memory of a rank
  double kernel_seconds = 0;           ///< overhead of a kernel
  double overlap = 1;                  ///< fraction of a started call that computation can hide
  /// Fraction of the shorter one of a product's arithmetic and memory traffic that the other hides.
  /// A BLAS that packs operands before it multiplies hides little.
  double product_overlap = 1;
  std::vector<NetworkLevel> network;  ///< from the innermost level to the outermost

  Size ranks() const { return network.empty() ? 1 : network.back().ranks; }
};

/// Returns the FLOP/s of a rank's products in the types of the plan. Throws ConfigError if the
/// machine has no rate for the type or too few ranks.
double product_rate(const Machine& machine, const PlanInput& input);

/// Returns the cost of the work of a plan. A kernel takes the longer of FLOPs and bytes over their
/// rates (the roofline model, Williams et al. 2009). A product adds the part of the shorter time
/// that product_overlap does not hide. A collective takes call_seconds() with the largest latency
/// of the levels that it crosses and the rate of the slowest link on a ring of its ranks; groups
/// that leave a node through one link share its rate.
CostOf cost_on(const Machine& machine, const Plan& plan);

}  // namespace tessera
