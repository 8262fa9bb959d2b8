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

template <class T>
Matrix<const T> kernel_of(const LayerCall<T>& call) {
  return alias_matrix(call.parameters[0].data(), call.layer.in, call.layer.out);
}

template <class T>
ProductBlocks::Part rows_of_grains(const LayerCall<T>& call) {
  return {call.blocks.grains, call.layer.positions};
}

template <class T>
void linear_forward(const LayerCall<T>& call) {
  call.with_output([&](const auto& y) {
    call.gemm(Trans::no, Trans::no, call.inputs[0], kernel_of(call), 0, y,
              {rows_of_grains(call), {call.blocks.out}, {call.blocks.in}});
  });
}

/// dkernel = x^T dy, dx = dy kernel^T.
template <class T>
void linear_backward(const LayerCall<T>& call) {
  if (call.parameter_gradients[0].data() != nullptr) {
    const auto gradient =
        alias_matrix(call.parameter_gradients[0].data(), call.layer.in, call.layer.out);
    call.gemm(Trans::yes, Trans::no, call.inputs[0], call.output_gradient,
              call.add_parameter_gradients ? 1 : 0, gradient,
              {{call.blocks.in}, {call.blocks.out}, rows_of_grains(call)});
  }
  call.with_input_gradient(0, [&](const auto& dx) {
    call.gemm(Trans::no, Trans::yes, call.output_gradient, kernel_of(call),
              call.add_input_gradients ? 1 : 0, dx,
              {rows_of_grains(call), {call.blocks.in}, {call.blocks.out}});
  });
}

constexpr LayerRow linear_row{.name = "linear",
                              .split_layouts = linear_layouts,
                              .fits = kernel_fits,
                              .rules_choose = true,
                              .products = linear_products,
                              .sums_in_blocks = true,
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
