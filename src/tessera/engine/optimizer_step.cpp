// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/optimizer_step.hpp>
#include <tessera/nn/products/convert.hpp>

namespace tessera {
namespace {

/// Returns the elements of an arena that the optimizer updates. If moments are sharded and
/// parameters are not, these are the rank's shares of the buckets, one run each; else one run.
template <class T>
std::vector<Vector<T>> runs_of(const StatePlan& state, const StateArena<T>& arena) {
  const Sharding& sharding = state.sharding;
  if (sharding.parameters || !sharding.moments) return {arena.flat()};
  std::vector<Vector<T>> runs;
  for (Size b = 0; b < static_cast<Size>(state.buckets.size()); ++b) runs.push_back(arena.share(b));
  return runs;
}

template <class T>
std::vector<ParameterRun<T>> runs_of(const StatePlan& state, const StateArena<T>& parameters,
                                     const StateArena<T>& gradients) {
  std::vector<ParameterRun<T>> runs;
  const std::vector<Vector<T>> of_gradients = runs_of(state, gradients);
  for (const Vector<T>& run : runs_of(state, parameters))
    runs.push_back({run, of_gradients[runs.size()]});
  return runs;
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
      runs_(runs_of(state, parameters, gradients)),
      unique_(plan.unique_gradients(rank)),
      loss_scale_(plan.input.scales_loss()) {
  if (state.has_copies) copies_ = runs_of(state, used);
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
    const StepSums& sums = step.sums_;
    const double scale = step.scale_;
    if (clip.value)
      clip_by_value<State>(step.gradients_.flat(), static_cast<State>(*clip.value * scale));
    if (!clip.global_norm) return;
    const Size first = sums.places().first_norm();
    Size next = first;
    for (const Range& range : step.unique_)
      sum_of_squares<State>(step.gradients_.range(range), sums.all(), next++);
    if (step.unique_.empty()) sum_of_squares<State>(Vector<State>(), sums.all(), next++);
    if (next > first + 1) add_up(sums.all(), first, next - first);
    const double squared_norm =
        sums.reduce(step.communicators_[action.call->ranks], first, ReduceOp::sum);
    step.gradient_scale_ =
        static_cast<State>(clip_scale(clip, squared_norm / (scale * scale)) / scale);
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
