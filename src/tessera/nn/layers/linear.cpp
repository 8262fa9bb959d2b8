// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

/// The two forms of tensor parallelism (Shoeybi et al. 2019, "Megatron-LM", section 3).
std::vector<Layout> linear_layouts() {
  const Layout column_parallel{.parameters = {by_columns},
                               .output = by_columns,
                               .output_gradient = by_columns,
                               .input_gradients = {as_terms},
                               .parameter_gradients = {by_columns}};
  const Layout row_parallel{.parameters = {by_rows},
                            .inputs = {by_columns},
                            .output = as_terms,
                            .input_gradients = {by_columns},
                            .parameter_gradients = {by_rows}};
  return {column_parallel, row_parallel};
}

bool kernel_fits(const LayerSpec& layer) {
  return layer.parameters[0].shape == Shape{layer.in, layer.out};
}

/// There is no product for the gradient of the input if that is the batch.
LayerProducts linear_products(const LayerSpec& layer, Size samples) {
  const Size n = samples * layer.positions;
  LayerProducts all{{{n, layer.out, layer.in}}, {{layer.in, layer.out, n}}};
  if (layer.inputs[0] != LayerSpec::data) all.backward.push_back({n, layer.in, layer.out});
  return all;
}

/// result (+)= op(a) op(b), or terms (+)= op(a) op(b) if `terms` has memory.
template <class T>
void product(const LayerCall<T>& call, Trans trans_a, Trans trans_b, const Matrix<const T>& a,
             const Matrix<const T>& b, bool adds, const Matrix<T>& result,
             const Matrix<StateOf<T>>& terms) {
  const StateOf<T> beta = adds ? 1 : 0;
  if (terms.data() != nullptr)
    call.gemm(trans_a, trans_b, a, b, beta, terms);
  else
    call.gemm(trans_a, trans_b, a, b, beta, result);
}

template <class T>
Matrix<const T> kernel_of(const LayerCall<T>& call) {
  return alias_matrix(call.parameters[0].data(), call.layer.in, call.layer.out);
}

template <class T>
void linear_forward(const LayerCall<T>& call) {
  product(call, Trans::no, Trans::no, call.inputs[0], kernel_of(call), false, call.output,
          call.output_terms);
}

/// dkernel = x^T dy, dx = dy kernel^T.
template <class T>
void linear_backward(const LayerCall<T>& call) {
  if (call.parameter_gradients[0].data() != nullptr) {
    const auto gradient =
        alias_matrix(call.parameter_gradients[0].data(), call.layer.in, call.layer.out);
    call.gemm(Trans::yes, Trans::no, call.inputs[0], call.output_gradient,
              call.add_parameter_gradients ? 1 : 0, gradient);
  }
  if (call.input_gradients[0].data() == nullptr && call.input_gradient_terms[0].data() == nullptr)
    return;
  product(call, Trans::no, Trans::yes, call.output_gradient, kernel_of(call),
          call.add_input_gradients, call.input_gradients[0], call.input_gradient_terms[0]);
}

constexpr LayerRow linear_row{.name = "linear",
                              .split_layouts = linear_layouts,
                              .fits = kernel_fits,
                              .rules_choose = true,
                              .products = linear_products,
                              .reads_inputs = always,
                              .adds_gradient = true,
                              .forward = [](const auto& call) { linear_forward(call); },
                              .backward = [](const auto& call) { linear_backward(call); }};

}  // namespace

LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel) {
  const Size in = kernel.shape[0], out = kernel.shape[1];
  return {&linear_row, std::move(name), std::move(unit), {input}, in, out, {std::move(kernel)}};
}

}  // namespace tessera
