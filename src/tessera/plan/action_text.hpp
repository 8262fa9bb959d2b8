// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Returns a name such as "forward", "start_reduce" or "backward_inputs".
std::string name_of(const Action& action);

/// Returns what an action is about: its layer, unit, bucket or tensor; "" if it has none of these.
std::string subject_of(const Action& action, const Plan& plan, const StagePlan& stage);

/// Returns the text of an action in the printed schedule, such as "forward(layer1/output)",
/// "gather(layer1)", "redistribute(layer2/product, all_reduce)" or "update". If a step has several
/// microbatches, it names that of an action on layers or tensors: "forward(layer1/output, m0)".
std::string to_string(const ListedAction& listed, const Plan& plan, const StagePlan& stage);

}  // namespace tessera
