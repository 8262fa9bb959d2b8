// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

/// Groups of columns, each with a kernel (in, out) of its own, or the transpose (out, in).
struct Kernels {
  Size groups, in, out;
  bool transposed;

  explicit Kernels(const LayerSpec& layer)
      : groups(layer.size("e")),
        in(layer.size("i")),
        out(layer.size("ogv")),
        transposed(layer.tied_to >= 0) {}
  /// Returns the kernel of the first group; the others follow.
  template <class E>
  Matrix<E> first(const Vector<E>& of) const {
    return transposed ? alias_matrix(of.data(), out, in) : alias_matrix(of.data(), in, out);
  }
  Size size() const { return in * out; }
  Trans forward() const { return transposed ? Trans::yes : Trans::no; }
  Trans backward() const { return transposed ? Trans::no : Trans::yes; }
  /// Returns the columns of the first group, of so many each.
  template <class E>
  static Matrix<E> columns(const Matrix<E>& of, Size width) {
    return block_of(of, {0, static_cast<Size>(of.extent(0))}, {0, width});
  }
};

template <class T>
void linear_forward(const LayerCall<T>& call) {
  const Kernels k(call.layer);
  if (k.groups == 0) return;
  call.with_output([&](const auto& y) {
    call.gemm.multiply_batch(Trans::no, k.forward(), k.columns(call.inputs[0], k.in),
                             k.first(call.parameters[0]), 0, k.columns(y, k.out),
                             {k.groups, k.in, k.size(), k.out}, call.blocks.in);
  });
}

/// dkernel = x^T dy, or its transpose dy^T x; dx = dy kernel^T.
template <class T>
void linear_backward(const LayerCall<T>& call) {
  const Kernels k(call.layer);
  if (k.groups == 0) return;
  const Matrix<const T> dy = k.columns(call.output_gradient, k.out);
  if (call.parameter_gradients[0].data() != nullptr) {
    const Matrix<const T> x = k.columns(call.inputs[0], k.in);
    const GemmBatch batch = k.transposed ? GemmBatch{k.groups, k.out, k.in, k.size()}
                                         : GemmBatch{k.groups, k.in, k.out, k.size()};
    call.gemm.multiply_batch(Trans::yes, Trans::no, k.transposed ? dy : x, k.transposed ? x : dy,
                             call.add_parameter_gradients ? 1 : 0,
                             k.first(call.parameter_gradients[0]), batch);
  }
  call.with_input_gradient(0, [&](const auto& dx) {
    call.gemm.multiply_batch(Trans::no, k.backward(), dy, k.first(call.parameters[0]),
                             call.add_input_gradients ? 1 : 0, k.columns(dx, k.in),
                             {k.groups, k.out, k.size(), k.in}, call.blocks.out);
  });
}

constexpr LayerKind kind_of_products(std::string_view name, const Expression& expression) {
  return {.name = name,
          .expression = expression,
          .rules_choose = true,
          .at_once = [](const LayerSpec& layer) { return std::max<Size>(1, layer.size("e")); },
          .sums_in_blocks = true,
          .reads_inputs = always,
          .adds_gradient = true,
          .forward = [](const auto& call) { linear_forward(call); },
          .backward = [](const auto& call) { linear_backward(call); }};
}

constexpr LayerKind linear_kind =
    kind_of_products("linear", {.inputs = {{"sp,i"}}, .parameters = {{"i,og"}}, .output = "sp,og"});

constexpr LayerKind grouped_linear_kind = kind_of_products(
    "grouped_linear", {.inputs = {{"sk,ei"}}, .parameters = {{"e,i,og"}}, .output = "sk,eog"});

constexpr LayerKind tied_linear_kind = kind_of_products(
    "tied_linear", {.inputs = {{"sp,i"}}, .parameters = {{"v,i"}}, .output = "sp,v"});

}  // namespace

LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel, Size gates) {
  const Shape& shape = kernel.shape;
  const bool grouped = shape.size() == 3;
  LayerSpec layer{grouped ? &grouped_linear_kind : &linear_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'i', shape[grouped ? 1 : 0]}, {'o', shape.back() / gates}}};
  if (grouped) layer.sizes.emplace('e', shape[0]);
  if (gates > 1) layer.sizes.emplace('g', gates);
  layer.parameters = {std::move(kernel)};
  return layer;
}

LayerSpec tied_linear(std::string name, std::string unit, Size input, Size tied_to, Size vocabulary,
                      Size width) {
  LayerSpec layer{&tied_linear_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'i', width}, {'v', vocabulary}}};
  layer.tied_to = tied_to;
  return layer;
}

}  // namespace tessera
