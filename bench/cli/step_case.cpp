// SPDX-License-Identifier: Apache-2.0
#include "cli/step_case.hpp"

#include <tessera/base/alias.hpp>
#include <tessera/base/allocation_tracker.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/step_options.hpp>
#include <tessera/nn/flops.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/random/fill.hpp>

namespace tessera::bench {
namespace {

Size microbatch_rows(const Plan& plan, const Mesh& mesh, Size microbatch = 0) {
  return plan.microbatch_rows(mesh.rank(), microbatch).count;
}

MatmulScratch scratch_of(const Plan& plan, const Mesh& mesh) {
  return matmul_scratch(plan.input.precision, plan.input.model, microbatch_rows(plan, mesh));
}

}  // namespace

void validate_case(const Config& config, Size ranks) {
  validate(config, ranks);
  if (config.model.dtype != DType::float32)
    throw ConfigError("model.dtype", name_of(config.model.dtype), "must be float32 here");
  if (config.data.samples % config.training.batch_size != 0)
    throw ConfigError("data.samples", std::to_string(config.data.samples),
                      "must be a multiple of training.batch_size here");
}

StepCase::StepCase(const Config& config, const Communicator& ranks)
    : config_(resolve(config, ranks.size())),
      mesh_(ranks, resolve_mesh(config_, ranks.size())),
      plan_(make_plan(plan_input(config_, mesh_.shape()))),
      data_(Dataset<float>::generate(plan_, mesh_.rank(), config_.data)),
      engine_(plan_, mesh_, step_options(config_.training)),
      gemm_(plan_.input.precision, scratch_of(plan_, mesh_).left, scratch_of(plan_, mesh_).right),
      activations_(plan_.layouts, plan_.input.model, plan_.input.model,
                   plan_.local_rows(mesh_.rank())) {
  // The first product of the backward pass reads it before anything has written it.
  const Size last = static_cast<Size>(plan_.input.model.layers.size()) - 1;
  fill_normal(activations_.output_gradient(last, microbatch_rows(plan_, mesh_)), key(0));
}

void StepCase::step(const Plan& plan) {
  const TrainingConfig& training = config_.training;
  const Size k = steps_ % data_.num_batches();
  engine_.step(plan, data_.batch(k), k,
               learning_rate_at(training.schedule, training.learning_rate, steps_++));
}

void StepCase::products() {
  for (const Action& action : plan_.actions) product(action);
}

void StepCase::product(const Action& action) {
  const Size layer = action.index;
  const Range rows = plan_.microbatch_rows(mesh_.rank(), action.microbatch);
  const auto input = [&] {
    return layer == 0 ? rows_of<const float>(data_.batch(0).x, rows)
                      : Matrix<const float>(activations_.output(layer - 1, rows.count));
  };
  const Matrix<float> kernel = engine_.parameters().kernel(layer);
  if (action.kind == ActionKind::forward) {
    gemm_(Trans::no, Trans::no, 1, input(), kernel, 0, activations_.output(layer, rows.count));
  } else if (action.kind == ActionKind::backward) {
    const Matrix<float> dz = activations_.output_gradient(layer, rows.count);
    gemm_(Trans::yes, Trans::no, 1, input(), dz, action.microbatch > 0 ? 1 : 0,
          engine_.gradients().kernel(layer));
    if (layer > 0)
      gemm_(Trans::no, Trans::yes, 1, dz, kernel, 0,
            activations_.output_gradient(layer - 1, rows.count));
  }
}

double StepCase::train() {
  const std::vector<Size> rows(data_.num_batches(), plan_.input.global_batch);
  double seconds = 0;
  for (Size epoch = 0; epoch < config_.training.num_epochs; ++epoch) {
    const Timer stepping;
    for (std::size_t k = 0; k < rows.size(); ++k) step();
    Kokkos::fence();
    seconds += stepping.seconds();
    engine_.losses(rows);
  }
  return seconds;
}

Size StepCase::allocations_of_step() {
  const AllocationScope scope;
  step();
  Kokkos::fence();
  return scope.allocations();
}

Plan with_overlap(const Plan& plan, bool overlap) {
  PlanInput input = plan.input;
  input.overlap = overlap;
  return make_plan(input);
}

SquareProduct::SquareProduct(Size n)
    : a_("tessera::bench::a", n, n), b_("tessera::bench::b", n, n), c_("tessera::bench::c", n, n) {
  fill_normal(a_, key(1));
  fill_normal(b_, key(2));
}

void SquareProduct::operator()() const { gemm_(Trans::no, Trans::no, 1, a_, b_, 0, c_); }

Size SquareProduct::flops() const {
  const Size n = static_cast<Size>(a_.extent(0));
  return gemm_flops(n, n, n);
}

}  // namespace tessera::bench
