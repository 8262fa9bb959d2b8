// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/model_spec.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/random/fill.hpp>

namespace tessera::testing_data {

/// An MLP trained on one rank with nothing but the pieces: one flat buffer for parameters, one for
/// gradients, and activations for one batch.
template <class T>
class SerialMlp {
 public:
  SerialMlp(const ModelSpec& model, Size rows, MatmulPrecision precision)
      : model_(model),
        gemm_(precision, scratch(rows), scratch(rows)),
        parameters_("parameters", model.num_parameters()),
        gradients_("gradients", model.num_parameters()),
        loss_("loss", 1) {
    for (Size l = 0; l < num_layers(); ++l) {
      const LinearSpec& layer = model_.layers[l];
      initialize<T>(kernel(parameters_, l), model_.initializer, fold_in(key(model_.seed), 2 * l),
                    GlobalBlock{}, layer.in, layer.out);
      outputs_.emplace_back("output", rows, layer.out);
      output_gradients_.emplace_back("output_gradient", rows, layer.out);
    }
  }

  /// Gradients of the mean squared error of one batch; its local sum stays in loss_sum().
  void compute_gradients(const Matrix<const T>& x, const Matrix<const T>& y) {
    for (Size l = 0; l < num_layers(); ++l) {
      linear_forward<T>(gemm_, model_.layers[l].activation, input(x, l), kernel(parameters_, l),
                        bias(parameters_, l), outputs_[l], outputs_[l]);
    }
    const Size last = num_layers() - 1;
    loss_and_gradient<T>(LossKind::mse, outputs_[last], y,
                         loss_count(LossKind::mse, y.extent(0), y.extent(1)), loss_, 0,
                         output_gradients_[last]);
    for (Size l = last; l >= 0; --l) {
      linear_backward<T>(gemm_, model_.layers[l].activation, input(x, l), kernel(parameters_, l),
                         outputs_[l], output_gradients_[l], kernel(gradients_, l),
                         bias(gradients_, l), l > 0 ? output_gradients_[l - 1] : Matrix<T>(),
                         false);
    }
  }

  const Vector<T>& parameters() const { return parameters_; }
  const Vector<T>& gradients() const { return gradients_; }
  const Vector<double>& loss_sum() const { return loss_; }

  Matrix<T> kernel(const Vector<T>& flat, Size l) const {
    return Matrix<T>(flat.data() + model_.unit_offset(l), model_.layers[l].in,
                     model_.layers[l].out);
  }
  Vector<T> bias(const Vector<T>& flat, Size l) const {
    const LinearSpec& layer = model_.layers[l];
    return Vector<T>(flat.data() + model_.unit_offset(l) + layer.in * layer.out, layer.out);
  }

 private:
  Size num_layers() const { return static_cast<Size>(model_.layers.size()); }
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
  Gemm<T> gemm_;
  Vector<T> parameters_, gradients_;
  Vector<double> loss_;
  std::vector<Matrix<T>> outputs_, output_gradients_;
};

/// The tutorial's data: x normal (256, 4), y the sum of squares of a row.
template <class T>
struct TutorialData {
  static constexpr Size samples = 256, batch = 32, batches = 8, epochs = 20;
  Matrix<T> x{"x", samples, 4}, y{"y", samples, 1};

  TutorialData() {
    fill_normal<T>(x, key(0));
    const Matrix<T> from = x, to = y;
    Kokkos::parallel_for(
        "tutorial_targets", Kokkos::RangePolicy<ExecSpace>(0, samples), KOKKOS_LAMBDA(int i) {
          T sum = 0;
          for (int j = 0; j < 4; ++j) sum += from(i, j) * from(i, j);
          to(i, 0) = sum;
        });
  }
  Matrix<const T> x_batch(Size b) const {
    return Matrix<const T>(x.data() + b * batch * 4, batch, 4);
  }
  Matrix<const T> y_batch(Size b) const { return Matrix<const T>(y.data() + b * batch, batch, 1); }
};

inline ModelSpec tutorial_model() { return mlp({.widths = {4, 64, 1}}); }

}  // namespace tessera::testing_data
