// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/last_batch.hpp>

namespace tessera {

Plan plan_last_batch(const Plan& plan) {
  const Size remainder = plan.input.samples % plan.input.global_batch;
  if (remainder == 0) return plan;
  PlanInput input = plan.input;
  input.global_batch = remainder;
  return make_plan(input);
}

}  // namespace tessera
