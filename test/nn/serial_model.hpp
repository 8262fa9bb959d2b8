// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/random/fill.hpp>

namespace tessera::test {

/// to += from. A free function, because nvcc rejects device lambdas in private methods.
template <class T>
void add_gradient(const Matrix<const T>& from, const Matrix<T>& to) {
  Kokkos::parallel_for(
      "add_gradient", to.span(), KOKKOS_LAMBDA(int e) { to.data()[e] += from.data()[e]; });
}

/// Losses and gradients of any model on one rank, from its layers only and without a plan. Every
/// output and every gradient has memory of its own.
template <class T>
class SerialModel {
 public:
  SerialModel(const ModelSpec& model, Size samples, LossKind loss = LossKind::mse,
              MatmulPrecision precision = MatmulPrecision::strict)
      : model_(model),
        samples_(samples),
        loss_kind_(loss),
        gemm_(precision, {scratch(samples), scratch(samples)}),
        parameters_("parameters", model.num_parameters()),
        gradients_("gradients", model.num_parameters()),
        loss_("loss", 1 + sums_of(model).losses) {
    for (const LayerSpec& layer : model_.layers) {
      const Size rows = samples * layer.positions();
      scratch_.emplace_back("scratch", layer.kind->scratch(layer, samples));
      outputs_.emplace_back("output", rows, layer.out());
      output_gradients_.emplace_back("output_gradient", rows, layer.out());
      saved_.emplace_back("saved", rows, layer.kind->saved_columns(layer));
      for (std::size_t p = 0; p < layer.parameters.size(); ++p) initialize_one(layer, p);
    }
  }

  /// Returns the mean loss of one batch.
  double loss(const Matrix<const T>& x, const Matrix<const T>& y) {
    run_forward(x);
    run_loss(y, Matrix<T>());
    const auto sum = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), loss_);
    double added = 0;
    for (std::size_t i = 1; i < sum.size(); ++i) added += sum(i);
    return sum(0) / static_cast<double>(count_of(y)) + added / static_cast<double>(count());
  }

  /// Computes the gradients of the mean loss of one batch; loss_sum() has its local sum.
  void compute_gradients(const Matrix<const T>& x, const Matrix<const T>& y) {
    run_forward(x);
    for (const Matrix<T>& gradient : output_gradients_) Kokkos::deep_copy(gradient, T(0));
    run_loss(y, output_gradients_.back());
    for (std::size_t l = model_.layers.size(); l-- > 0;) run_backward(l, x);
  }

  const Vector<T>& parameters() const { return parameters_; }
  const Vector<T>& gradients() const { return gradients_; }
  const Vector<double>& loss_sum() const { return loss_; }
  const Matrix<T>& output() const { return outputs_.back(); }
  /// Sets the number of the step and of the batch's first sample.
  void set_step(Size step, Size first = 0) {
    step_ = step;
    first_ = first;
  }

  /// Makes later passes draw from the prior.
  void draw_from_prior() { from_prior_ = true; }

  /// Returns a parameter's part of a flat vector of all parameters, in the order of the layers.
  Vector<T> parameter(const Vector<T>& flat, const std::string& path) const {
    for (const LayerSpec& layer : model_.layers)
      for (std::size_t p = 0; p < layer.parameters.size(); ++p)
        if (path_of(layer, layer.parameters[p]) == path) return in(flat, layer, p);
    return {};
  }

 private:
  Vector<T> in(const Vector<T>& flat, const LayerSpec& wanted, std::size_t number) const {
    Size at = 0;
    for (const LayerSpec& layer : model_.layers)
      for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
        const Size n = num_elements(layer.parameters[p].shape);
        if (layer.name == wanted.name && p == number) return alias_vector(flat.data() + at, n);
        at += n;
      }
    return {};
  }

  void initialize_one(const LayerSpec& layer, std::size_t p) {
    const ParameterSpec& spec = layer.parameters[p];
    const Vector<T> values = in(parameters_, layer, p);
    if (spec.initial == Initial::ones) Kokkos::deep_copy(values, T(1));
    if (spec.initial == Initial::uniform)
      fill_uniform(values, uniform_limit(spec), fold_in(key(model_.seed), spec.stream), {});
    if (spec.initial == Initial::drawn)
      initialize(values, model_.initializer, fold_in(key(model_.seed), spec.stream), {},
                 fan_in(spec.shape), spec.shape.back());
  }

  Matrix<const T> input(const Matrix<const T>& x, Size producer) const {
    return producer == LayerSpec::data ? x : Matrix<const T>(outputs_[producer]);
  }

  LayerCall<T> call_of(std::size_t l, const Matrix<const T>& x) const {
    const LayerSpec& layer = model_.layers[l];
    LayerCall<T> call{layer, gemm_, samples_};
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      call.inputs[i] = input(x, layer.inputs[i]);
    call.scratch = scratch_[l];
    const auto before = sums_of(model_, static_cast<Size>(l)).losses;
    call.batch = {.x = x, .first = first_, .step = step_, .loss = loss_.data() + 1 + before};
    call.batch.gradient_scale = T(1) / static_cast<T>(count());
    call.batch.from_prior = from_prior_;
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      call.parameters[p] = in(parameters_, layer, p);
    if (layer.tied_to >= 0) call.parameters[0] = in(parameters_, model_.layers[layer.tied_to], 0);
    call.output = outputs_[l];
    call.saved = saved_[l];
    return call;
  }

  void run_forward(const Matrix<const T>& x) {
    for (std::size_t l = 0; l < model_.layers.size(); ++l) forward(call_of(l, x));
  }

  /// Computes each input's gradient and adds it to those of other readers.
  void run_backward(std::size_t l, const Matrix<const T>& x) {
    const LayerSpec& layer = model_.layers[l];
    const LayerKind& kind = *layer.kind;
    LayerCall<T> call = call_of(l, x);
    call.output_gradient = output_gradients_[l];
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      call.parameter_gradients[p] = in(gradients_, layer, p);
    if (layer.tied_to >= 0)
      call.parameter_gradients[0] = tied_ = Vector<T>("tied", call.parameters[0].size());
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      if (layer.inputs[i] != LayerSpec::data)
        call.input_gradients[i] =
            Matrix<T>("input_gradient", static_cast<std::size_t>(samples_ * layer.positions_of(i)),
                      static_cast<std::size_t>(layer.columns_of(i)));
    backward(call);
    if (model_.layers.back().tied_to == static_cast<Size>(l))
      add_gradient(alias_matrix<const T>(tied_.data(), 1, tied_.size()),
                   alias_matrix(call.parameter_gradients[0].data(), 1, tied_.size()));
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      if (layer.inputs[i] == LayerSpec::data) continue;
      const Matrix<const T> from =
          kind.passes_gradient(layer) ? call.output_gradient : call.input_gradients[i];
      add_gradient(from, output_gradients_[static_cast<std::size_t>(layer.inputs[i])]);
    }
  }

  LossShape shape() const {
    return loss_shape(loss_kind_, samples_, model_.output_positions(), model_.output_width());
  }
  Size count() const { return loss_count(loss_kind_, shape().rows, shape().cols); }

  /// Returns the divisor of the sum of the losses, without ignored targets. If all are ignored, the
  /// loss is 0.
  Size count_of(const Matrix<const T>& y) const {
    if (!model_.ignore_index) return count();
    const auto targets = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    const Size ignored = std::count(targets.data(), targets.data() + targets.span(),
                                    static_cast<T>(*model_.ignore_index));
    return std::max(static_cast<Size>(targets.span()) - ignored, Size{1});
  }

  void run_loss(const Matrix<const T>& y, const Matrix<T>& gradient) {
    const LossShape of = shape();
    const Size columns = targets_of(loss_kind_) == Targets::classes ? 1 : of.cols;
    LossDetails<T> details;
    if (model_.ignore_index) details.ignored = static_cast<double>(*model_.ignore_index);
    loss_and_gradient<T>(
        loss_kind_, alias_matrix<const T>(outputs_.back().data(), of.rows, of.cols),
        alias_matrix(y.data(), of.rows, columns), count_of(y), loss_, gradient, details);
  }

  Size scratch(Size samples) const {
    Size most = 0;
    for (const LayerSpec& layer : model_.layers)
      for (const GemmShape& product : products_of(layer, samples))
        most = std::max({most, product.m * product.k, product.k * product.n});
    return most;
  }

  ModelSpec model_;
  Size samples_;
  bool from_prior_ = false;
  Size step_ = 1, first_ = 0;
  LossKind loss_kind_;
  Gemm<T> gemm_;
  Vector<T> parameters_, gradients_;
  Vector<T> tied_;  ///< the gradient of a layer that is tied to another one
  Vector<double> loss_;
  std::vector<Vector<T>> scratch_;
  std::vector<Matrix<T>> outputs_, output_gradients_, saved_;
};

}  // namespace tessera::test
