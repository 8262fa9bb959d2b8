// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/process/outcome.hpp>

#include "results/results_directory.hpp"
#include "run/group.hpp"
#include "run/launch.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {

/// The losses that a case is compared with, or the reason why there are none.
struct FoundReference {
  std::optional<LossCurve> losses{};
  Size ranks = 0;         ///< ranks that computed the losses
  std::string problem{};  ///< why the case has no reference
  Outcome failure{};      ///< an error of the reference, which ends the case

  static void fields(auto& f, auto& v) {
    f("losses", v.losses, "ranks", v.ranks, "problem", v.problem, "code", v.failure.code, "message",
      v.failure.message);
  }
};

/// The references of a study's cases. Each is computed once for all cases that train in the same
/// way, and kept in the results for other launches.
class References {
 public:
  References(const Study& study, const ResultsDirectory& results, const RunOptions& options)
      : study_(study), results_(results), options_(options) {}

  /// Computes the references of these cases that the results lack, one after the other, before
  /// anything is timed. With --give-up, a reference during which that many launches have ended
  /// fails instead. Collective over `world`.
  void make(const std::vector<const Case*>& cases, const Communicator& world,
            AbortRecord& abort_record);

  /// The reference of a case with this configuration. On rank 0.
  FoundReference find(const Config& config) const;

  double seconds() const { return seconds_; }  ///< spent in make()

 private:
  bool begin(const ReferencePlan& plan);
  void compute(const ReferencePlan& plan, const Communicator& world, AbortRecord& abort_record);

  const Study& study_;
  const ResultsDirectory& results_;
  const RunOptions& options_;
  CaseLock lock_;  ///< held on rank 0 while a reference is computed
  std::map<std::string, FoundReference> failures_;  ///< failures of this launch, by name
  double seconds_ = 0;
};

/// Returns the relative difference of losses that is allowed: `asked`, but with 16-bit activations
/// at least the unit roundoff of their type, 2^-8 of bfloat16 and 2^-11 of float16. Additions in
/// another order may make any activation round the other way.
double loss_tolerance(const Config& config, double asked);

struct LossVerdict {
  LossResult loss;
  std::string problem;  ///< why the case is invalid; empty if it is not
};
LossVerdict judge_losses(const Verification& verification, const FoundReference& reference,
                         const std::string& reference_name, double tolerance);

}  // namespace tessera::bench
