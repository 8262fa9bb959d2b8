// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include <tessera/plan/plan.hpp>
#include <tessera/tensor/mesh.hpp>

namespace tessera {

/// The communicators for the calls of a plan, by the axes along which their ranks differ.
class PlanCommunicators {
 public:
  /// Collective over the mesh, unless the mesh has already made these communicators.
  PlanCommunicators(const Plan& plan, const Mesh& mesh) {
    for (const AxisSet axes : axes_of_calls(plan)) {
      const Communicator ranks = mesh.over(axes, plan.input.mesh);
      communicators_.emplace(axes, plan.input.numerics.reproducible ? ranks.in_tree() : ranks);
    }
    if (!plan.input.ties_stages()) return;
    const Communicator& stages = mesh.axis("pipeline");
    ends_ = stages.split(
        [last = stages.size() - 1](int rank) { return rank == 0 || rank == last ? 0 : 1; },
        stages.axis());
  }
  /// The ranks of the first and of the last stage with this rank's other coordinates, if layers of
  /// these stages are tied.
  const Communicator& first_and_last_stage() const { return ends_.value(); }
  const Communicator& operator[](AxisSet axes) const { return communicators_.at(axes); }

 private:
  std::map<AxisSet, Communicator> communicators_;
  std::optional<Communicator> ends_;
};

}  // namespace tessera
