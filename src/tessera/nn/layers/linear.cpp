// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

/// Groups of columns, each with a kernel (in, stored) of its own. The layer uses `out` columns of a
/// kernel: the rank's, or all that it stores.
struct Kernels {
  Size groups, in, stored, out;
  Range own;

  explicit Kernels(const LayerSpec& layer) {
    const Shape& shape = layer.parameters[0].shape;
    groups = shape.size() == 3 ? shape[0] : 1;
    in = shape[shape.size() - 2];
    stored = shape.back();
    out = layer.size("og");
    own = {layer.part('o').begin * layer.size("g"), out};
  }
  template <class E>
  Matrix<E> kernel(const Vector<E>& of, Size group) const {
    const Matrix<E> all = alias_matrix(of.data() + group * in * stored, in, stored);
    return out == stored ? all : block_of(all, {0, in}, own);
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
  const auto& dkernels = call.parameter_gradients[0];
  if (k.out < k.stored && dkernels.data() != nullptr && !call.add_parameter_gradients)
    Kokkos::deep_copy(ExecSpace(), dkernels, StateOf<T>(0));
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

template <class E>
Matrix<E> table_of(const LayerSpec& layer, const Vector<E>& of) {
  return alias_matrix(of.data(), layer.size("v"), layer.size("i"));
}

template <class T>
void tied_forward(const LayerCall<T>& call) {
  call.with_output([&](const auto& y) {
    call.gemm(Trans::no, Trans::yes, call.inputs[0], table_of(call.layer, call.parameters[0]), 0, y,
              {call.blocks.out, call.blocks.in});
  });
}

/// dtable = dy^T x, dx = dy table.
template <class T>
void tied_backward(const LayerCall<T>& call) {
  const Matrix<const T>& dy = call.output_gradient;
  if (call.parameter_gradients[0].data() != nullptr)
    call.gemm(Trans::yes, Trans::no, dy, call.inputs[0], call.add_parameter_gradients ? 1 : 0,
              table_of(call.layer, call.parameter_gradients[0]),
              {call.blocks.in, 1, call.blocks.out});
  call.with_input_gradient(0, [&](const auto& dx) {
    call.gemm(Trans::no, Trans::no, dy, table_of(call.layer, call.parameters[0]),
              call.add_input_gradients ? 1 : 0, dx, {call.blocks.in, call.blocks.out});
  });
}

constexpr LayerKind kind_of_products(std::string_view name, const Expression& expression,
                                     LayerKind::Kernel forward, LayerKind::Kernel backward) {
  return {.name = name,
          .expression = expression,
          .rules_choose = true,
          .sums_in_blocks = true,
          .reads_inputs = always,
          .adds_gradient = true,
          .forward = forward,
          .backward = backward};
}

constexpr auto of_kernels = [](const auto& call) { linear_forward(call); };
constexpr auto of_kernels_backward = [](const auto& call) { linear_backward(call); };

constexpr LayerKind linear_kind =
    kind_of_products("linear", {.inputs = {{"sp,i"}}, .parameters = {{"i,og"}}, .output = "sp,og"},
                     of_kernels, of_kernels_backward);

constexpr LayerKind grouped_linear_kind = kind_of_products(
    "grouped_linear", {.inputs = {{"sk,ei"}}, .parameters = {{"e,i,og"}}, .output = "sk,eog"},
    of_kernels, of_kernels_backward);

constexpr LayerKind tied_linear_kind = kind_of_products(
    "tied_linear", {.inputs = {{"sp,i"}}, .parameters = {{"v,i"}}, .output = "sp,v"},
    [](const auto& call) { tied_forward(call); }, [](const auto& call) { tied_backward(call); });

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
