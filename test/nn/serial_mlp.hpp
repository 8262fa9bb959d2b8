// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/model_spec.hpp>
#include <tessera/random/fill.hpp>

namespace tessera::test {

/// Losses and gradients of a model on one rank with nothing but the pieces: one flat buffer for
/// parameters, one for gradients, and activations for one batch.
template <class T>
class SerialMlp {
 public:
  SerialMlp(const ModelSpec& model, Size rows, LossKind loss = LossKind::mse,
            MatmulPrecision precision = MatmulPrecision::strict)
      : model_(model),
        loss_kind_(loss),
        gemm_(precision, scratch(rows), scratch(rows)),
        parameters_("parameters", model.num_parameters()),
        gradients_("gradients", model.num_parameters()),
        loss_("loss", 1) {
    for (Size l = 0; l < num_layers(); ++l) {
      const LinearSpec& layer = model_.layers[l];
      initialize<T>(kernel(parameters_, l), model_.initializer, fold_in(key(model_.seed), 2 * l),
                    GlobalBlock{}, layer.in, layer.out);
      outputs_.emplace_back("output", rows, layer.out);
      preactivations_.push_back(needs_preactivation(layer.activation)
                                    ? Matrix<T>("preactivation", rows, layer.out)
                                    : outputs_.back());
      output_gradients_.emplace_back("output_gradient", rows, layer.out);
    }
  }

  /// The mean loss of one batch, by way of the host.
  double loss(const Matrix<const T>& x, const Matrix<const T>& y) {
    forward(x);
    loss_and_gradient<T>(loss_kind_, outputs_.back(), y, count(y), loss_, 0, Matrix<T>());
    const auto sum = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), loss_);
    return sum(0) / static_cast<double>(count(y));
  }

  /// Gradients of the mean loss of one batch; its local sum stays in loss_sum().
  void compute_gradients(const Matrix<const T>& x, const Matrix<const T>& y,
                         bool accumulate = false) {
    forward(x);
    const Size last = num_layers() - 1;
    loss_and_gradient<T>(loss_kind_, outputs_[last], y, count(y), loss_, 0,
                         output_gradients_[last]);
    for (Size l = last; l >= 0; --l) {
      linear_backward<T>(gemm_, model_.layers[l].activation, input(x, l), kernel(parameters_, l),
                         preactivations_[l], output_gradients_[l], kernel(gradients_, l),
                         bias(gradients_, l), l > 0 ? output_gradients_[l - 1] : Matrix<T>(),
                         accumulate);
    }
  }

  const Vector<T>& parameters() const { return parameters_; }
  const Vector<T>& gradients() const { return gradients_; }
  const Vector<double>& loss_sum() const { return loss_; }

  Matrix<T> kernel(const Vector<T>& flat, Size l) const {
    const LinearSpec& layer = model_.layers[l];
    return Matrix<T>(flat.data() + model_.unit_offset(l), layer.in, layer.out);
  }
  Vector<T> bias(const Vector<T>& flat, Size l) const {
    const LinearSpec& layer = model_.layers[l];
    if (!layer.bias) return {};
    return Vector<T>(flat.data() + model_.unit_offset(l) + layer.in * layer.out, layer.out);
  }

 private:
  void forward(const Matrix<const T>& x) {
    for (Size l = 0; l < num_layers(); ++l) {
      linear_forward<T>(gemm_, model_.layers[l].activation, input(x, l), kernel(parameters_, l),
                        bias(parameters_, l), preactivations_[l], outputs_[l]);
    }
  }
  Size num_layers() const { return static_cast<Size>(model_.layers.size()); }
  Size count(const Matrix<const T>& y) const {
    return loss_count(loss_kind_, y.extent(0), y.extent(1));
  }
  Matrix<const T> input(const Matrix<const T>& x, Size l) const {
    return l == 0 ? x : Matrix<const T>(outputs_[l - 1]);
  }
  Size scratch(Size rows) const {
    Size most = 0;
    for (const LinearSpec& layer : model_.layers) {
      most = std::max({most, layer.in * layer.out, rows * layer.in, rows * layer.out});
    }
    return most;
  }

  ModelSpec model_;
  LossKind loss_kind_;
  Gemm<T> gemm_;
  Vector<T> parameters_, gradients_;
  Vector<double> loss_;
  std::vector<Matrix<T>> outputs_, preactivations_, output_gradients_;
};

}  // namespace tessera::test
