// SPDX-License-Identifier: Apache-2.0
// A machine as far as the time of a step depends on it, in a dozen numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/predict/simulate.hpp>

namespace tessera {

/// Ranks that reach each other over one kind of link: those of a node, a rack, the machine. Levels
/// lie in each other, and neighbouring ranks share the inner ones.
struct NetworkLevel {
  std::string name;
  Size ranks = 1;              ///< that it connects: a multiple of those of the level inside it
  double latency_seconds = 0;  ///< of a message
  /// Each way, of the link that leads out of a rank or, from the second level on, out of a group
  /// of the level inside, whose ranks share it.
  double bytes_per_second = 0;
  /// That a message takes longer when it is longer than eager_bytes: sender and receiver agree
  /// before it is sent (LogGPS: Ino, Fujimoto, Hagihara 2001).
  double rendezvous_seconds = 0;
  Size eager_bytes = 4096;
};

/// Seconds of a collective of `n` ranks over such links: rounds of messages and their bytes, of
/// doubling and halving the distance; of an all-reduce the shorter of all bytes in half as many
/// rounds and of fewest bytes (Thakur, Rabenseifner, Gropp 2005).
double call_seconds(const NetworkLevel& level, Operation operation, Size n, double bytes);

struct Machine {
  std::string name;
  /// That products of a rank reach, by the type of their operands; "tf32" for float32 in that.
  std::map<std::string, double> flops_per_second;
  double memory_bytes_per_second = 0;  ///< that kernels of a rank reach
  Size memory_bytes = 0;               ///< of a rank
  double kernel_seconds = 0;           ///< that a kernel takes beside its work
  double overlap = 1;                  ///< part of a started call that computation can hide
  /// Part of the shorter of a product's arithmetic and memory traffic that the other hides. A BLAS
  /// that packs operands before it multiplies hides little.
  double product_overlap = 1;
  std::vector<NetworkLevel> network;  ///< from inside out

  Size ranks() const { return network.empty() ? 1 : network.back().ranks; }
};

/// FLOP/s of a rank's products in the types of the plan. Throws ConfigError unless the machine has
/// such products and as many ranks.
double product_rate(const Machine& machine, const PlanInput& input);

/// What the work of a plan takes. A kernel is bound by its FLOPs or its bytes (the roofline model,
/// Williams et al. 2009); a product takes longer by what product_overlap leaves of the smaller
/// time. A collective takes call_seconds() with the latency of the outermost level and the rate of
/// the slowest link on a ring of its ranks, which groups that leave a node through one link share.
CostOf cost_on(const Machine& machine, const Plan& plan);

}  // namespace tessera
