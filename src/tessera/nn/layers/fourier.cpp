// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <utility>

#include <tessera/nn/layers/fourier_transform.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

/// Sets `to` to `from`, or adds it.
template <class From, class To>
void take(Size n, const From* from, To* to, bool adds) {
  for_each(
      "tessera::fourier_nodes"_label, n,
      KOKKOS_LAMBDA(Size i) { to[i] = adds ? StateOf<To>(to[i]) + from[i] : from[i]; });
}

/// Goes from a grid to its modes, or back. `inverse`: for the kind that goes to the grid forward.
/// If sums over points have a fixed order, they are added in a tree over blocks of points.
template <bool inverse, bool to_modes, class T, class Out>
void fourier_transform(const LayerCall<T>& call, const Matrix<const T>& from,
                       const Matrix<Out>& to) {
  using detail::FourierScale;
  using State = StateOf<T>;
  const detail::FourierModes all(call.layer);
  const auto transform = [&](const detail::FourierModes& of) {
    return detail::FourierTransform<T>(call, of,
                                       inverse ? FourierScale::mirror : FourierScale::mean,
                                       inverse ? call.blocks.in : call.blocks.out);
  };
  if constexpr (!to_modes) {
    transform(all).to_grid(from, to);
  } else if (!all.share.has_blocks()) {
    transform(all).to_modes(from, to);
  } else {
    const Range blocks = all.share.blocks_of(all.share.part);
    const Size elements = all.of_modes(call.samples);
    const auto node = [&](Size row) {
      State* const first = call.scratch.data() + all.scratch(call.samples) + row * elements;
      return alias_matrix(first, static_cast<Size>(to.extent(0)), static_cast<Size>(to.extent(1)));
    };
    if (blocks.count == 0) set_minus_zero(node(0));
    for (Size b = 0; b < blocks.count; ++b) {
      transform(all.block(blocks.begin + b)).to_modes(from, node(nodes_in({0, b})));
      join_rows(0, {b, 1}, [&](Size lower, Size upper) {
        take(elements, node(upper).data(), node(lower).data(), true);
      });
    }
    take(elements, node(0).data(), to.data(), false);
  }
}

template <bool inverse>
LayerProducts fourier_products(const LayerSpec& layer, Size samples) {
  const detail::FourierModes of(layer);
  return {of.products(samples, !inverse), of.products(samples, inverse)};
}

/// Backward is the transpose of forward.
template <bool inverse>
constexpr LayerKind fourier_kind_of(std::string_view name, const Expression& expression) {
  return {.name = name,
          .expression = expression,
          .rules_choose = !inverse,
          .products = fourier_products<inverse>,
          .scratch =
              [](const LayerSpec& layer, Size samples) {
                const detail::FourierModes of(layer);
                return of.scratch(samples) + of.nodes(samples);
              },
          .sums_in_blocks = true,
          .forward =
              [](const auto& call) {
                call.with_output([&](const auto& y) {
                  fourier_transform<inverse, !inverse>(call, call.inputs[0], y);
                });
              },
          .backward =
              [](const auto& call) {
                call.with_input_gradient(0, [&](const auto& dx) {
                  fourier_transform<inverse, inverse>(call, call.output_gradient, dx);
                });
              }};
}

constexpr LayerKind fourier_kind =
    fourier_kind_of<false>("fourier", Expression{.inputs = {{"sp,c"}}, .output = "s,qmrc"});
constexpr LayerKind inverse_fourier_kind =
    fourier_kind_of<true>("inverse_fourier", Expression{.inputs = {{"s,qmrc"}}, .output = "sp,c"});

/// p are the points of the grid, q and m the frequencies k1 and k2, and r the real and imaginary
/// parts. Ranks of `model` have whole frequencies k1.
LayerSpec fourier_layer(const LayerKind& kind, std::string name, std::string unit, Size input,
                        const FourierGrid& grid) {
  LayerSpec layer{&kind, std::move(name), std::move(unit), {input}};
  layer.sizes = {{'p', grid.n * grid.n},
                 {'q', 2 * grid.modes},
                 {'m', grid.modes},
                 {'r', 2},
                 {'c', grid.width}};
  layer.settings = grid;
  layer.groups = {"frequencies", "model.fno.modes", grid.modes};
  return layer;
}

}  // namespace

LayerSpec fourier(std::string name, std::string unit, Size input, const FourierGrid& grid) {
  return fourier_layer(fourier_kind, std::move(name), std::move(unit), input, grid);
}

LayerSpec inverse_fourier(std::string name, std::string unit, Size input, const FourierGrid& grid) {
  return fourier_layer(inverse_fourier_kind, std::move(name), std::move(unit), input, grid);
}

}  // namespace tessera
