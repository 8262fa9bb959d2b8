// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layer_call.hpp>
#include <tessera/nn/linear.hpp>

namespace tessera {
namespace {

constexpr Placement whole = Placement::replicate();
constexpr Placement rows = Placement::shard(0);
constexpr Placement columns = Placement::shard(1);
constexpr Placement terms = Placement::partial();

/// Whole, column-parallel, row-parallel (Shoeybi et al. 2019, "Megatron-LM", section 3).
std::vector<Layout> linear_layouts(const LayerSpec&) {
  return {{{whole}, {whole}, whole, whole, {whole}, {whole}},
          {{columns}, {whole}, columns, columns, {terms}, {columns}},
          {{rows}, {columns}, terms, whole, {columns}, {rows}}};
}

/// The gradient of x is never wanted.
LayerProducts linear_products(const LayerSpec& layer, Size n) {
  LayerProducts all{{{n, layer.out, layer.in}}, {{layer.in, layer.out, n}}};
  if (layer.inputs[0] != LayerSpec::data) all.backward.push_back({n, layer.in, layer.out});
  return all;
}

template <class T>
void linear_forward(const LayerCall<T>& call) {
  const LayerSpec& layer = call.layer;
  const auto kernel = alias_matrix(call.parameters[0].data(), layer.in, layer.out);
  call.gemm(Trans::no, Trans::no, 1, call.inputs[0], kernel, 0, call.output);
}

/// dkernel = x^T dy, dx = dy kernel^T.
template <class T>
void linear_backward(const LayerCall<T>& call) {
  const LayerSpec& layer = call.layer;
  if (call.parameter_gradients[0].data() != nullptr) {
    const auto gradient = alias_matrix(call.parameter_gradients[0].data(), layer.in, layer.out);
    call.gemm(Trans::yes, Trans::no, 1, call.inputs[0], call.output_gradient,
              call.add_parameter_gradients ? 1 : 0, gradient);
  }
  if (call.input_gradients[0].data() == nullptr) return;
  const auto kernel = alias_matrix(call.parameters[0].data(), layer.in, layer.out);
  call.gemm(Trans::no, Trans::yes, 1, call.output_gradient, kernel,
            call.add_input_gradients ? 1 : 0, call.input_gradients[0]);
}

constexpr LayerRow linear_row{.name = "linear",
                              .layouts = linear_layouts,
                              .rules_choose = true,
                              .products = linear_products,
                              .reads_inputs = always,
                              .adds_gradient = true,
                              .forward = {linear_forward, linear_forward},
                              .backward = {linear_backward, linear_backward}};

}  // namespace

LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel) {
  const Size in = kernel.shape[0], out = kernel.shape[1];
  return {&linear_row, std::move(name), std::move(unit), {input}, in, out, {std::move(kernel)}};
}

}  // namespace tessera
