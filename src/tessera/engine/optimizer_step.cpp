// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/engine/optimizer_step.hpp>
#include <tessera/nn/products/convert.hpp>

namespace tessera {
namespace {

constexpr std::uint32_t rounding_stream = 0x726f756e;  // no parameter has this stream

/// Returns the key of the rounding of a parameter's moments. A layer may have another number on
/// another mesh; the number of the parameter is the same.
Key rounding_key(const ModelSpec& model, const ParameterPlan& parameter) {
  Size number = parameter.number;
  for (Size l = 0; l < parameter.layer; ++l)
    number += static_cast<Size>(model.layers[l].parameters.size());
  return fold_in(fold_in(key(model.seed), rounding_stream), static_cast<std::uint32_t>(number));
}

double muon_scale(MuonScale scale, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]), cols = static_cast<double>(shape[1]);
  return scale == MuonScale::match_rms ? 0.2 * std::sqrt(std::max(rows, cols))
                                       : std::sqrt(std::max(1.0, cols / rows));
}

/// Returns true if `next` begins where `run` ends.
template <class T>
bool continues(const Vector<T>& run, const std::remove_const_t<T>* next) {
  return run.data() + run.extent(0) == next;
}

/// Reduces the first `count` sums over `ranks` and returns them. Waits for the device.
template <std::size_t count>
std::array<double, count> reduced(const Communicator& ranks, const Vector<double>& sums,
                                  ReduceOp op) {
  const Vector<double> first = alias_vector(sums.data(), static_cast<Size>(count));
  ranks.all_reduce(first, op);
  std::array<double, count> values;
  Kokkos::deep_copy(
      Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values.data(), count),
      first);
  return values;
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
      optimizer_(optimizer, state.moments(), state.matrices),
      orthogonalization_(plan, rank, communicators),
      unique_(plan.unique_gradients(rank)),
      in_fixed_order_(plan.input.numerics.reproducible),
      squares_(plan.input.model.num_parameters()),
      loss_scale_(plan.input.scales_loss()) {
  for (const ParameterPlan& parameter : plan.stage(rank).parameters.parameters) {
    const Range own = intersection(parameter.place, state.buckets[parameter.bucket].owned);
    if (own.count == 0) continue;
    const auto place_in = [&](const auto& arena) { return arena.kept(parameter.bucket, own); };
    ParameterRun<State> run{place_in(parameters), place_in(gradients),
                            parameter.is_kernel || optimizer.weight_decay_on == WeightDecayOn::all,
                            static_cast<State>(parameter.sign_rate)};
    const Piece piece = plan.piece(rank, parameter);
    if (plan.input.has_bf16_moments && num_elements(piece.extent) > 0) {
      run.key = rounding_key(plan.input.model, parameter);
      run.place = run_of(parameter.shape, piece, own.begin - parameter.place.begin);
    }
    run.is_matrix = parameter.is_matrix;
    add_run(run, state.has_copies ? place_in(used) : Vector<T>());
    if (run.is_matrix)
      matrices_.push_back({runs_.size() - 1, parameter.bucket, own,
                           static_cast<State>(muon_scale(optimizer.muon_scale, parameter.shape))});
  }
  Optimizer<State>::place_moments(runs_);
}

template <class T>
void OptimizerStep<T>::add_run(const ParameterRun<State>& run, const Vector<T>& copy) {
  const bool has_copies = copy.extent(0) > 0;
  const bool joins = !runs_.empty() && !run.is_matrix && !runs_.back().is_matrix &&
                     runs_.back().decays == run.decays && runs_.back().sign_rate == run.sign_rate &&
                     runs_.back().key == run.key &&
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
void OptimizerStep<T>::run(const CheckFinite& check) {
  const Region region("tessera::check_finite");
  Kokkos::deep_copy(ExecSpace(), sums_.finite(), 0.0);
  for (const ParameterRun<State>& run : runs_) find_not_finite<State>(run.grads, sums_.finite());
  overflows_ = reduced<1>(communicators_[check.ranks], sums_.finite(), ReduceOp::max)[0] > 0;
  if (overflows_ && !loss_scale_.can_shrink())
    throw Error(ExitCode::wrong_result, "training diverged: the gradient of step {} is not finite",
                steps_);
}

template <class T>
void OptimizerStep<T>::run(const FindLargest& find) {
  const Region region("tessera::find_largest");
  Kokkos::deep_copy(ExecSpace(), sums_.norm(), 0.0);
  for (const Range& range : unique_)
    ExactSquares::raise_to_largest<State>(gradients_.range(range), sums_.norm());
  largest_ = reduced<1>(communicators_[find.ranks], sums_.norm(), ReduceOp::max)[0];
  if (clip_.value) largest_ = std::min(largest_, *clip_.value * scale_);  // clips first
}

template <class T>
void OptimizerStep<T>::run(const Clip& clip) {
  const Region region("tessera::clip");
  if (clip_.value)
    clip_by_value<State>(gradients_.flat(), static_cast<State>(*clip_.value * scale_));
  if (!clip_.global_norm) return;
  const Communicator& ranks = communicators_[clip.ranks];
  const double squared = in_fixed_order_ ? exact_squared_norm(ranks) : squared_norm(ranks);
  gradient_scale_ = static_cast<State>(clip_scale(clip_, squared / (scale_ * scale_)) / scale_);
}

template <class T>
double OptimizerStep<T>::squared_norm(const Communicator& ranks) const {
  const auto parts = static_cast<Size>(unique_.size());
  for (Size i = 0; i < parts; ++i)
    sum_of_squares<State>(gradients_.range(unique_[i]), alias_vector(sums_.norm().data() + i, 1));
  if (parts == 0) sum_of_squares<State>(Vector<State>(), sums_.norm());
  if (parts > 1) add_up(alias_vector(sums_.norm().data(), parts));
  return reduced<1>(ranks, sums_.norm(), ReduceOp::sum)[0];
}

template <class T>
double OptimizerStep<T>::exact_squared_norm(const Communicator& ranks) const {
  Kokkos::deep_copy(ExecSpace(), sums_.norm(), 0.0);
  for (const Range& range : unique_)
    squares_.template add<State>(gradients_.range(range), largest_, sums_.norm());
  const auto limbs = reduced<square_limbs>(ranks, sums_.norm(), ReduceOp::sum);
  return squares_.total(limbs, largest_);
}

template <class T>
void OptimizerStep<T>::run(const Orthogonalize& part, double learning_rate) {
  if (overflows_) return;
  optimizer_.set_steps(steps_ - loss_scale_.skipped_steps());
  if (part.phase == Phase::whole) return orthogonalization_.orthogonalize(part.bucket);
  for (const MatrixRun& matrix : matrices_) {
    if (matrix.bucket != part.bucket) continue;
    const Vector<State> direction = orthogonalization_.directions(part.bucket, matrix.elements);
    if (part.phase == Phase::start)
      optimizer_.update(runs_[matrix.run], 0, gradient_scale_, direction);
    else
      optimizer_.move(runs_[matrix.run], static_cast<State>(learning_rate), matrix.scale,
                      direction);
  }
}

/// A step whose gradients overflow leaves parameters, moments and their count unchanged.
template <class T>
void OptimizerStep<T>::update(double learning_rate) {
  if (!overflows_) {
    const Region region("tessera::update");
    optimizer_.set_steps(steps_ - loss_scale_.skipped_steps());
    for (const ParameterRun<State>& run : runs_)
      if (!run.is_matrix)
        optimizer_.update(run, static_cast<State>(learning_rate), gradient_scale_);
    renew_copies();
  }
  loss_scale_.step(overflows_);
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
