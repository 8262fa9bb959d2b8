// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/optimizer_step.hpp>
#include <tessera/nn/products/convert.hpp>

namespace tessera {
namespace {

/// Returns true if `next` begins where `run` ends.
template <class T>
bool continues(const Vector<T>& run, const std::remove_const_t<T>* next) {
  return run.data() + run.extent(0) == next;
}

}  // namespace

template <class T>
OptimizerStep<T>::OptimizerStep(const Plan& plan, Size rank, const StatePlan& state,
                                const OptimizerConfig& optimizer, const ClipConfig& clip,
                                const PlanCommunicators& communicators, const StepSums& sums,
                                const StateArena<State>& parameters, const StateArena<T>& used,
                                const StateArena<State>& gradients)
    : clip_(clip),
      communicators_(communicators),
      sums_(sums),
      gradients_(gradients),
      optimizer_(optimizer, state.moments()),
      unique_(plan.unique_gradients(rank)),
      in_fixed_order_(plan.input.numerics.reproducible),
      squares_(plan.input.model.num_parameters()),
      loss_scale_(plan.input.scales_loss()) {
  for (const ParameterPlan& parameter : plan.stage(rank).parameters.parameters) {
    const Range share = state.buckets[parameter.bucket].share;
    const Range own = intersection(parameter.place, share);
    if (own.count == 0) continue;
    const auto place_in = [&](const auto& arena) {
      return alias_vector(arena.share(parameter.bucket).data() + own.begin - share.begin,
                          own.count);
    };
    add_run({place_in(parameters), place_in(gradients),
             parameter.is_kernel || optimizer.weight_decay_on == WeightDecayOn::all},
            state.has_copies ? place_in(used) : Vector<T>());
  }
}

template <class T>
void OptimizerStep<T>::add_run(const ParameterRun<State>& run, const Vector<T>& copy) {
  const bool has_copies = copy.extent(0) > 0;
  const bool joins = !runs_.empty() && runs_.back().decays == run.decays &&
                     continues(runs_.back().params, run.params.data()) &&
                     continues(runs_.back().grads, run.grads.data()) &&
                     (!has_copies || continues(copies_.back(), copy.data()));
  if (!joins) {
    runs_.push_back(run);
    if (has_copies) copies_.push_back(copy);
    return;
  }
  const auto extend = [&](auto& last) {
    last = alias_vector(last.data(), static_cast<Size>(last.extent(0) + run.params.extent(0)));
  };
  extend(runs_.back().params);
  extend(runs_.back().grads);
  if (has_copies) extend(copies_.back());
}

template <class T>
void OptimizerStep<T>::begin() {
  scale_ = loss_scale_.value();
  gradient_scale_ = static_cast<State>(1 / scale_);
  overflows_ = false;
  ++steps_;
}

template <class T>
struct OptimizerStep<T>::Operations {
  OptimizerStep& step;

  void check_finite(const Action& action) const {
    const Region region("tessera::check_finite");
    const StepSums& sums = step.sums_;
    const Size flag = sums.places().first_finite();
    Kokkos::deep_copy(ExecSpace(), Kokkos::subview(sums.all(), flag), 0.0);
    for (const ParameterRun<State>& run : step.runs_)
      find_not_finite<State>(run.grads, sums.all(), flag);
    step.overflows_ = sums.reduce(step.communicators_[action.call->ranks], flag, ReduceOp::max) > 0;
    if (step.overflows_ && !step.loss_scale_.can_shrink())
      throw Error(ExitCode::wrong_result,
                  "training diverged: the gradient of step {} is not finite", step.steps_);
  }

  /// Each element counts once in the norm over all ranks, which is summed in double.
  void clip(const Action& action) const {
    const Region region("tessera::clip");
    const ClipConfig& clip = step.clip_;
    const double scale = step.scale_;
    if (clip.value)
      clip_by_value<State>(step.gradients_.flat(), static_cast<State>(*clip.value * scale));
    if (!clip.global_norm) return;
    const double squared_norm =
        step.in_fixed_order_ ? exact_squared_norm(action) : squared_norm_of(action);
    step.gradient_scale_ =
        static_cast<State>(clip_scale(clip, squared_norm / (scale * scale)) / scale);
  }

  double squared_norm_of(const Action& action) const {
    const StepSums& sums = step.sums_;
    const Size first = sums.places().first_norm();
    Size next = first;
    for (const Range& range : step.unique_)
      sum_of_squares<State>(step.gradients_.range(range), sums.all(), next++);
    if (step.unique_.empty()) sum_of_squares<State>(Vector<State>(), sums.all(), next++);
    if (next > first + 1) add_up(sums.all(), first, next - first);
    return sums.reduce(step.communicators_[action.call->ranks], first, ReduceOp::sum);
  }

  void find_largest(const Action& action) const {
    const Region region("tessera::find_largest");
    const StepSums& sums = step.sums_;
    const Size first = sums.places().first_norm();
    sums.clear(first, 1);
    for (const Range& range : step.unique_)
      ExactSquares::raise_to_largest<State>(step.gradients_.range(range), sums.all(), first);
    step.largest_ = sums.reduce(step.communicators_[action.call->ranks], first, ReduceOp::max);
    if (step.clip_.value)  // clips first
      step.largest_ = std::min(step.largest_, *step.clip_.value * step.scale_);
  }

  double exact_squared_norm(const Action& action) const {
    const StepSums& sums = step.sums_;
    const Size first = sums.places().first_norm();
    sums.clear(first, square_limbs);
    for (const Range& range : step.unique_)
      step.squares_.template add<State>(step.gradients_.range(range), step.largest_, sums.all(),
                                        first);
    const auto limbs =
        sums.reduce<square_limbs>(step.communicators_[action.call->ranks], first, ReduceOp::sum);
    return step.squares_.total(limbs, step.largest_);
  }

  /// A step whose gradients overflow leaves parameters, moments and their count unchanged.
  void update(double learning_rate) const {
    if (!step.overflows_) {
      step.optimizer_.step(step.runs_, static_cast<State>(learning_rate), step.gradient_scale_);
      step.renew_copies();
    }
    step.loss_scale_.step(step.overflows_);
  }
};

template <class T>
void OptimizerStep<T>::act(const Action& action, double learning_rate) {
  const Operations operations{*this};
  switch (action.operation) {
    case StepOperation::check_finite:
      return operations.check_finite(action);
    case StepOperation::find_largest:
      return operations.find_largest(action);
    case StepOperation::clip:
      return operations.clip(action);
    case StepOperation::update:
      return operations.update(learning_rate);
    default:
      throw std::logic_error("the engine does not execute " + name_of(action));
  }
}

template <class T>
double OptimizerStep<T>::own_squared_norm() const {
  double sum = 0;
  for (const Range& range : unique_) sum += sum_of_squares<State>(gradients_.range(range));
  return sum / (scale_ * scale_);
}

template <class T>
void OptimizerStep<T>::renew_copies() {
  if constexpr (!std::is_same_v<State, T>)
    for (std::size_t r = 0; r < copies_.size(); ++r) convert<State, T>(runs_[r].params, copies_[r]);
}

template <class T>
void OptimizerStep<T>::resume(Size steps, const LossScaleState& loss_scale) {
  steps_ = steps;
  optimizer_.set_steps(steps - loss_scale.skipped_steps);
  loss_scale_.set_state(loss_scale);
  renew_copies();
}

TESSERA_INSTANTIATE_CLASS(OptimizerStep);

}  // namespace tessera
