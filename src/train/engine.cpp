// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/random/threefry.hpp>
#include <tessera/train/engine.hpp>

namespace tessera {
namespace {

/// Layer l draws its kernel from stream 2l of the model's key; 2l + 1 is its bias's, which is zero.
template <class T>
void draw_parameters(const ModelSpec& model, const ParameterArena<T>& parameters) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LinearSpec& layer = model.layers[l];
    const Key stream = fold_in(key(model.seed), static_cast<std::uint32_t>(2 * l));
    initialize(parameters.kernel(static_cast<Size>(l)), model.initializer, stream, GlobalBlock{},
               layer.in, layer.out);
  }
}

Size largest_microbatch(const Plan& plan, const Mesh& mesh) {
  return plan.microbatch_rows(mesh.rank(), 0).count;
}

}  // namespace

template <class T>
Engine<T>::Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options)
    : model_(plan.input.model),
      options_(options),
      microbatches_(plan.input.microbatches),
      batch_axis_(mesh.axis("data")),
      parameters_("tessera::parameters", model_),
      gradients_("tessera::gradients", model_),
      activations_(model_, largest_microbatch(plan, mesh)),
      optimizer_(options.optimizer, model_.num_parameters()),
      gemm_(plan.input.precision, matmul_scratch(plan.input, largest_microbatch(plan, mesh)).left,
            matmul_scratch(plan.input, largest_microbatch(plan, mesh)).right),
      sums_("tessera::sums", plan.steps_per_epoch() * microbatches_ + 1),
      host_sums_(Kokkos::create_mirror_view(sums_)),
      pending_(plan.buckets.size()) {
  draw_parameters(model_, parameters_);
}

template <class T>
void Engine<T>::step(const Plan& plan, const Batch<T>& batch, Size slot, double learning_rate) {
  const Region region("tessera::step");
  gradient_scale_ = 1;
  for (const Action& action : plan.actions) {
    const Range rows =
        balanced_split(static_cast<Size>(batch.x.extent(0)), microbatches_, action.microbatch);
    act(action, plan, {batch, rows, action.microbatch}, slot, learning_rate);
    poll();
  }
}

template <class T>
void Engine<T>::act(const Action& action, const Plan& plan, const Pass& pass, Size slot,
                    double rate) {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(pass, action.index);
    case ActionKind::loss:
      return loss(pass, slot);
    case ActionKind::backward:
      return backward(pass, action.index);
    case ActionKind::reduce:
      return batch_axis_.all_reduce(gradients_of(plan.buckets[action.index]));
    case ActionKind::start_reduce:
      pending_[action.index] = batch_axis_.iall_reduce(gradients_of(plan.buckets[action.index]));
      return;
    case ActionKind::finish_reduce:
      return pending_[action.index].wait();
    case ActionKind::clip:
      return clip();
    case ActionKind::update:
      return optimizer_.step(parameters_.flat(), gradients_.flat(), static_cast<T>(rate),
                             gradient_scale_);
  }
}

template <class T>
Matrix<const T> Engine<T>::input(const Pass& pass, Size layer) const {
  if (layer == 0) return rows_of<const T>(pass.batch.x, pass.rows);
  return activations_.output(layer - 1, pass.rows.count);
}

template <class T>
void Engine<T>::forward(const Pass& pass, Size layer) {
  const Region region("tessera::forward");
  const Size rows = pass.rows.count;
  linear_forward<T>(gemm_, model_.layers[layer].activation, input(pass, layer),
                    parameters_.kernel(layer), parameters_.bias(layer),
                    activations_.preactivation(layer, rows), activations_.output(layer, rows));
}

template <class T>
void Engine<T>::loss(const Pass& pass, Size slot) {
  const Region region("tessera::loss");
  const Size last = static_cast<Size>(model_.layers.size()) - 1;
  const Size rows = pass.rows.count;
  const Size count = options_.sum_gradients
                         ? 1
                         : loss_count(options_.loss, pass.batch.global_rows, model_.output_width());
  loss_and_gradient<T>(options_.loss, activations_.output(last, rows),
                       rows_of<const T>(pass.batch.y, pass.rows), count, sums_,
                       slot * microbatches_ + pass.index, activations_.output_gradient(last, rows));
}

template <class T>
void Engine<T>::backward(const Pass& pass, Size layer) {
  const Region region("tessera::backward");
  const Size rows = pass.rows.count;
  const Matrix<T> input_gradient =
      layer == 0 ? Matrix<T>() : activations_.output_gradient(layer - 1, rows);
  linear_backward<T>(gemm_, model_.layers[layer].activation, input(pass, layer),
                     parameters_.kernel(layer), activations_.preactivation(layer, rows),
                     activations_.output_gradient(layer, rows), gradients_.kernel(layer),
                     gradients_.bias(layer), input_gradient, pass.index > 0);
}

template <class T>
void Engine<T>::clip() {
  const Region region("tessera::clip");
  if (options_.clip.value)
    clip_by_value<T>(gradients_.flat(), static_cast<T>(*options_.clip.value));
  if (!options_.clip.global_norm) return;
  const Size slot = static_cast<Size>(sums_.extent(0)) - 1;
  sum_of_squares<T>(gradients_.flat(), sums_, slot);
  const auto here = Kokkos::subview(sums_, slot);
  double squared_norm = 0;
  Kokkos::deep_copy(squared_norm, here);
  gradient_scale_ = static_cast<T>(clip_scale(options_.clip, squared_norm));
}

/// Non-blocking MPI moves only inside MPI calls, so started reductions are asked for between
/// layers.
template <class T>
void Engine<T>::poll() {
  for (Request& request : pending_) request.test();
}

template <class T>
Vector<T> Engine<T>::gradients_of(const Bucket& bucket) const {
  return gradients_.range(bucket.elements.begin, bucket.elements.count);
}

template <class T>
std::vector<double> Engine<T>::losses(const std::vector<Size>& global_rows) {
  const std::size_t steps = global_rows.size();
  batch_axis_.all_reduce(alias_vector(sums_.data(), static_cast<Size>(steps) * microbatches_));
  Kokkos::deep_copy(host_sums_, sums_);
  std::vector<double> losses(steps);
  for (std::size_t s = 0; s < steps; ++s) {
    for (Size m = 0; m < microbatches_; ++m) losses[s] += host_sums_(s * microbatches_ + m);
    losses[s] /=
        static_cast<double>(loss_count(options_.loss, global_rows[s], model_.output_width()));
  }
  return losses;
}

template class Engine<float>;
template class Engine<double>;

}  // namespace tessera
