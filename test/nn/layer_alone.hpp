// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera::test {

/// One layer with operands of its own. Inputs, parameters and the gradient of the output are
/// normal; an embedding reads class numbers.
template <class T>
struct LayerAlone {
  using State = StateOf<T>;

  explicit LayerAlone(const LayerSpec& spec, Size samples)
      : layer(spec),
        gemm(MatmulPrecision::strict, {most, most, most}),
        y("y", samples * layer.positions(), layer.out()),
        dy(normal_matrix<T>(samples * layer.positions(), layer.out(), 1)),
        loss("loss", std::max<std::size_t>(1, layer.kind->loss_terms.size())) {
    call.samples = samples;
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      const Size rows = samples * layer.positions_of(i);
      x.push_back(normal_matrix<T>(rows, layer.columns_of(i), 2 + i));
      dx.emplace_back("dx", rows, layer.columns_of(i));
      call.inputs[i] = x.back();
      call.input_gradients[i] = dx.back();
      if (i > 0 && layer.kind->name == "attention") give_terms(i);
    }
    std::vector<Size> elements;
    for (const ParameterSpec& parameter : layer.parameters)
      elements.push_back(num_elements(parameter.shape));
    if (layer.tied_to >= 0) elements.push_back(layer.size("vi"));
    for (std::size_t p = 0; p < elements.size(); ++p) {
      const Size n = elements[p];
      parameters.push_back(normal_matrix<T>(1, n, 5 + p));
      gradients.emplace_back("gradient", n);
      call.parameters[p] = alias_vector<const T>(parameters.back().data(), n);
      call.parameter_gradients[p] = gradients.back();
    }
    call.output = y;
    call.output_gradient = dy;
    call.saved = Matrix<State>("saved", y.extent(0), layer.kind->saved_columns(layer));
    call.scratch = Vector<State>("scratch", layer.kind->scratch(layer, samples));
    const Size rows = samples * layer.positions_of(0);
    std::vector<State> classes;
    for (Size i = 0; i < rows; ++i)
      classes.push_back(static_cast<State>((3 * i + 1) % layer.total('v')));
    call.batch = {to_device<State>(classes, rows, 1), 11, 4, loss.data(), nullptr, State(0.25)};
  }
  LayerAlone(const LayerAlone&) = delete;
  LayerAlone& operator=(const LayerAlone&) = delete;

  void run() const {
    forward(call);
    backward(call);
  }
  /// Takes the numbers of the operands of a layer with a type of fewer bits.
  template <class Narrow>
  void take_operands(const LayerAlone<Narrow>& from) const {
    for (std::size_t i = 0; i < x.size(); ++i) take(from.x[i], x[i]);
    for (std::size_t p = 0; p < parameters.size(); ++p) take(from.parameters[p], parameters[p]);
    take(from.dy, dy);
  }
  template <class Narrow>
  static void take(const Matrix<Narrow>& from, const Matrix<T>& to) {
    std::vector<T> values;
    for (const Narrow value : to_host(from))
      values.push_back(static_cast<T>(static_cast<StateOf<Narrow>>(value)));
    Kokkos::deep_copy(to, to_device(values, from.extent(0), from.extent(1)));
  }

  /// Makes the gradient of keys and values that ranks share a sum of unrounded terms.
  void give_terms(std::size_t i) {
    if constexpr (is_half_v<T>)
      terms = Matrix<State>("terms", dx[i].extent(0), dx[i].extent(1));
    else
      terms = dx[i];
    call.input_gradients[i] = {};
    call.input_gradient_terms[i] = terms;
  }

  static constexpr Size most = 1 << 16;  ///< elements of any operand of a product
  LayerSpec layer;
  Gemm<T> gemm;
  std::vector<Matrix<T>> x, dx, parameters;
  std::vector<Vector<State>> gradients;
  Matrix<T> y, dy;
  Matrix<State> terms;
  Vector<double> loss;
  LayerCall<T> call{layer, gemm};
};

}  // namespace tessera::test
