// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/process/outcome.hpp>

#include "results/journal.hpp"
#include "run/group.hpp"
#include "run/launch.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {

/// The reference of a case, or the reason why it has none.
struct FoundReference {
  std::optional<Reference> reference{};
  std::string problem{};  ///< why the case has no reference
  Outcome failure{};      ///< an error of the reference, which ends the case

  static void fields(auto& f, auto& v) {
    f("reference", v.reference);
    f("problem", v.problem);
    f("code", v.failure.code);
    f("message", v.failure.message);
  }
};

/// The references of a study's cases. Each is computed once for all cases that train in the same
/// way, and kept in the journal for other launches.
class References {
 public:
  explicit References(LaunchState& launch) : launch_(launch), study_(launch.study) {}

  /// Takes the references of these cases from the journals, but not from the launches that are to
  /// be replaced, by name. Computes those that they lack, one after the other, before anything is
  /// timed. With --give-up, a reference during which that many launches have ended fails instead.
  /// Collective over the launch.
  void make(const std::vector<const Case*>& cases, Journals journals,
            const std::map<std::string, std::vector<std::string>>& instead_of);

  /// The reference of a case with this configuration.
  FoundReference find(const Config& config) const;

  /// Returns a line for each mesh of several ranks that computed references.
  std::string meshes_text() const;

 private:
  FoundReference compute(const ReferencePlan& plan, std::vector<std::string> instead_of);

  LaunchState& launch_;
  const Study& study_;
  std::map<std::string, FoundReference> found_;  ///< by name
};

/// Returns a mesh as messages name it: "1 rank", "fsdp=4".
std::string mesh_text(const std::string& mesh);

/// Returns the relative difference of losses that is allowed: `asked`, but with 16-bit activations
/// at least the unit roundoff of their type, 2^-8 of bfloat16 and 2^-11 of float16. Additions in
/// another order may make any activation round the other way.
double loss_tolerance(const Config& config, double asked);

struct LossVerdict {
  LossResult loss;
  std::string problem;  ///< why the case is invalid; empty if it is not
};
LossVerdict judge_losses(const Verification& verification, const FoundReference& found,
                         const std::string& reference_name, double tolerance);

}  // namespace tessera::bench
