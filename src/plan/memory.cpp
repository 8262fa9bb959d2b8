// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/memory.hpp>

namespace tessera {

ActivationElements activation_elements(const ModelSpec& model, Size rows) {
  ActivationElements elements;
  const std::size_t layers = model.layers.size();
  for (std::size_t l = 0; l < layers; ++l) {
    const LinearSpec& layer = model.layers[l];
    const Size output = rows * layer.out;
    elements.outputs += output;
    if (needs_preactivation(layer.activation)) elements.preactivations += output;
    Size& buffer = elements.gradients[(layers - 1 - l) % 2];
    buffer = std::max(buffer, output);
  }
  return elements;
}

MatmulScratch matmul_scratch(const PlanInput& input, Size rows) {
  MatmulScratch scratch;
  if (input.precision == MatmulPrecision::strict) return scratch;
  bool input_gradient = false;  // the first layer's input is data
  for (const LinearSpec& layer : input.model.layers) {
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

MemoryPlan plan_memory(const PlanInput& input, Size microbatch_rows, Size data_rows, Size steps) {
  const auto bytes = [&](Size elements) { return allocated_bytes(elements, size_of(input.dtype)); };
  const Size parameters = input.model.num_parameters();
  const MatmulScratch scratch = matmul_scratch(input, microbatch_rows);
  MemoryPlan memory;
  memory.parameters = bytes(parameters);
  memory.gradients = bytes(parameters);
  memory.moments = bytes(input.moments * parameters);
  memory.activations = bytes(activation_elements(input.model, microbatch_rows).total());
  memory.scratch = bytes(scratch.left) + bytes(scratch.right);
  memory.sums = allocated_bytes(steps * input.microbatches + 1, size_of(DType::float64));
  memory.data =
      bytes(data_rows * input.model.input_width()) + bytes(data_rows * input.model.output_width());
  return memory;
}

}  // namespace tessera
