// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/split.hpp>
#include <tessera/plan/memory.hpp>

namespace tessera {
namespace {

/// Elements of the buffers that redistributions around layer `l` go through; `l` may be the loss.
void add_redistributions(const Layouts& layouts, const ModelSpec& local, const ModelSpec& whole,
                         Size l, Size rows, ActivationElements& elements) {
  const Size layers = layouts.size();
  const auto at_least = [](Size& buffer, Size n) { buffer = std::max(buffer, n); };
  if (l < layers && layouts.by_rows(l))
    at_least(elements.redistributed, rows * whole.layers[l].out);
  if (layouts.to_input(l) == Transition::keep) return;
  const Size width = l == 0 ? whole.layers[0].in : whole.layers[l - 1].out;
  at_least(elements.redistributed, rows * (l < layers ? local.layers[l].in : width));
  const bool by_columns = l == 0 || !layouts.by_rows(l - 1);
  if (l > 0 && by_columns) at_least(elements.packed, rows * width);
}

}  // namespace

Size LocalRows::of(const Layouts& layouts, Size layer) const {
  return layouts.by_rows(layer) ? balanced_split(microbatch, model_ranks, model_coordinate).count
                                : microbatch;
}

ActivationElements activation_elements(const Layouts& layouts, const ModelSpec& local,
                                       const ModelSpec& whole, const LocalRows& rows) {
  ActivationElements elements;
  const Size layers = layouts.size();
  for (Size l = 0; l < layers; ++l) {
    const LinearSpec& layer = local.layers[l];
    const Size output = rows.of(layouts, l) * layer.out;
    elements.outputs += output;
    if (needs_preactivation(layer.activation)) elements.preactivations += output;
    Size& buffer = elements.gradients[(layers - 1 - l) % 2];
    buffer = std::max(buffer, output);
  }
  for (Size l = 0; l <= layers; ++l)
    add_redistributions(layouts, local, whole, l, rows.microbatch, elements);
  return elements;
}

MatmulScratch matmul_scratch(MatmulPrecision precision, const ModelSpec& local, Size rows) {
  MatmulScratch scratch;
  if (precision == MatmulPrecision::strict) return scratch;
  bool input_gradient = false;  // the first layer's input is data
  for (const LinearSpec& layer : local.layers) {
    if (rows > 1 && layer.in > 1 && layer.out > 1) {
      scratch.left = std::max(scratch.left, rows * layer.in);
      scratch.right = std::max({scratch.right, layer.in * layer.out, rows * layer.out});
      if (input_gradient) scratch.left = std::max(scratch.left, rows * layer.out);
    }
    input_gradient = true;
  }
  return scratch;
}

Size allocated_bytes(Size elements, Size element_bytes) {
  constexpr Size unit = 8;
  return (elements * element_bytes + unit - 1) / unit * unit;
}

}  // namespace tessera
