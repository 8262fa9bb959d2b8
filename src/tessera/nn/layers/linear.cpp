// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

/// Groups of columns, each with a kernel (in, out) of its own.
struct Kernels {
  Size groups, in, out;

  explicit Kernels(const LayerSpec& layer) {
    const Shape& shape = layer.parameters[0].shape;
    groups = shape.size() == 3 ? shape[0] : 1;
    in = shape[shape.size() - 2];
    out = shape.back();
  }
  template <class E>
  Matrix<E> kernel(const Vector<E>& of, Size group) const {
    return alias_matrix(of.data() + group * in * out, in, out);
  }
  template <class E>
  static Matrix<E> columns(const Matrix<E>& of, Size width, Size group) {
    return block_of(of, {0, static_cast<Size>(of.extent(0))}, {group * width, width});
  }
};

template <class T>
void linear_forward(const LayerCall<T>& call) {
  const Kernels k(call.layer);
  call.with_output([&](const auto& y) {
    for (Size g = 0; g < k.groups; ++g)
      call.gemm(Trans::no, Trans::no, k.columns(call.inputs[0], k.in, g),
                k.kernel(call.parameters[0], g), 0, k.columns(y, k.out, g),
                {call.blocks.out, call.blocks.in});
  });
}

/// dkernel = x^T dy, dx = dy kernel^T.
template <class T>
void linear_backward(const LayerCall<T>& call) {
  const Kernels k(call.layer);
  for (Size g = 0; g < k.groups; ++g) {
    const Matrix<const T> dy = k.columns(call.output_gradient, k.out, g);
    if (call.parameter_gradients[0].data() != nullptr)
      call.gemm(Trans::yes, Trans::no, k.columns(call.inputs[0], k.in, g), dy,
                call.add_parameter_gradients ? 1 : 0, k.kernel(call.parameter_gradients[0], g),
                {call.blocks.out, 1, call.blocks.in});
    call.with_input_gradient(0, [&](const auto& dx) {
      call.gemm(Trans::no, Trans::yes, dy, k.kernel(call.parameters[0], g),
                call.add_input_gradients ? 1 : 0, k.columns(dx, k.in, g),
                {call.blocks.in, call.blocks.out});
    });
  }
}

constexpr LayerKind kind_of_products(std::string_view name, const Expression& expression) {
  return {.name = name,
          .expression = expression,
          .rules_choose = true,
          .sums_in_blocks = true,
          .reads_inputs = always,
          .adds_gradient = true,
          .forward = [](const auto& call) { linear_forward(call); },
          .backward = [](const auto& call) { linear_backward(call); }};
}

constexpr LayerKind linear_kind =
    kind_of_products("linear", {.inputs = {{"sp,i"}}, .parameters = {{"i,o"}}, .output = "sp,o"});

constexpr LayerKind grouped_linear_kind = kind_of_products(
    "grouped_linear", {.inputs = {{"sk,ei"}}, .parameters = {{"e,i,o"}}, .output = "sk,eo"});

}  // namespace

LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel) {
  const Shape& shape = kernel.shape;
  const bool grouped = shape.size() == 3;
  LayerSpec layer{grouped ? &grouped_linear_kind : &linear_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'i', shape[grouped ? 1 : 0]}, {'o', shape.back()}}};
  if (grouped) layer.sizes.emplace('e', shape[0]);
  layer.parameters = {std::move(kernel)};
  return layer;
}

}  // namespace tessera
