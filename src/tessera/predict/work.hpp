// SPDX-License-Identifier: Apache-2.0
// The kernels and calls of a plan's actions with their FLOPs and bytes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include <tessera/plan/plan.hpp>
#include <tessera/predict/software.hpp>

namespace tessera {

/// One piece of the work of an action on a rank: a kernel or a call.
struct Work {
  /// PassKind::forward or PassKind::backward for a kernel of a layer; none for other work.
  std::optional<PassKind> pass{};
  bool updates = false;                    ///< true for a kernel of the optimizer
  double kernels = 1;                      ///< number of kernels; each matrix product is one
  double flops = 0;                        ///< FLOPs of matrix products
  std::map<Size, double> flops_of_side{};  ///< `flops` by GemmShape::side()
  double functions = 0;                    ///< exponential and hyperbolic functions of a kernel
  double bytes = 0;  ///< payload of a call, or bytes that a kernel reads and writes
  /// Bytes that a host reads and writes beside a call that does not work in place, for the copy of
  /// its share. NCCL copies while other shares are on their way.
  double copied = 0;
  bool has_products = false;  ///< true for a layer that consists mainly of matrix products

  /// The call, if this is one. If it is started and finished, the start has the payload as `bytes`,
  /// and the finish has 0 bytes.
  std::optional<ActionCall> call{};
  /// Identifies a started call or a message among those of its ranks. The messages of a tensor have
  /// one number, and arrive in the order in which they are sent.
  Size number = 0;
  /// The own stage and the other one of a message, or the two that sum a tied unit; -1 for any
  /// other work.
  Size stage = -1, peer = -1;

  bool is_message() const { return peer >= 0 && call->operation != Operation::all_reduce; }
  /// Returns true if the rank has nothing to do. A call without bytes takes its latency.
  bool is_empty() const {
    return flops == 0 && functions == 0 && bytes == 0 && !(call && call->is_issued);
  }
  friend bool operator==(const Work&, const Work&) = default;
};

/// The numbers that determine the work of a rank, computed once per rank.
struct WorkSizes {
  CallSizes calls;
  std::map<Size, LayerSpec> layers;  ///< of the rank's stage by number, with the rank's extents
  Size unique_gradients = 0;         ///< number of elements in Plan::unique_gradients()
  Software software{};
  /// With BlockRecomputation::whole: actions of the plan that are repeated with a layer's repeated
  /// forward pass, although the plan does not repeat them.
  std::map<Size, std::vector<const Action*>> repeated_with{};
};
WorkSizes work_sizes(const Plan& plan, Size rank, const Software& software = {});

/// Returns the bytes that the optimizer reads and writes on a rank, without those of copies in the
/// compute type and of matrices of muon.
Size update_bytes(const PlanInput& input, const StatePlan& state);

/// Returns the work of an action on a microbatch on the rank of `sizes`, in the order in which the
/// engine does it. All ranks of a stage get the same number of pieces, some of which may be empty.
/// A call along axes of size 1 is left out.
std::vector<Work> work_of(const Action& action, Size microbatch, const Plan& plan,
                          const WorkSizes& sizes);

}  // namespace tessera
