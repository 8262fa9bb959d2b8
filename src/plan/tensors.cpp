// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/split.hpp>
#include <tessera/plan/tensors.hpp>

namespace tessera {
namespace {

/// Rows of the first, and so the largest, microbatch over all ranks. Every rank splits its own
/// rows, which gives each microbatch a balanced split over the ranks again.
Size first_microbatch_rows(const PlanInput& input) {
  Size parts = 1;
  for (const std::string& axis : batch_axes(input.mesh)) parts *= input.mesh.size_of(axis);
  // The first B mod parts ranks hold one row more than the others.
  const Size extra = input.global_batch % parts;
  const Size base = input.global_batch / parts;
  const Size rows = extra * balanced_split(base + 1, input.microbatches, 0).count +
                    (parts - extra) * balanced_split(base, input.microbatches, 0).count;
  return rows;
}

}  // namespace

std::string_view name_of(TensorRole role) {
  switch (role) {
    case TensorRole::parameter:
      return "parameter";
    case TensorRole::gradient:
      return "gradient";
    case TensorRole::moment:
      return "moment";
    case TensorRole::activation:
      return "activation";
    case TensorRole::batch:
      return "batch";
  }
  return "unknown";
}

std::vector<TensorPlan> place_tensors(const PlanInput& input) {
  const Placements replicated(input.mesh.axes().size(), Placement::replicate());
  Placements by_rows = replicated;
  for (const std::string& axis : batch_axes(input.mesh))
    by_rows[*input.mesh.find(axis)] = Placement::shard(0);

  const Size rows = first_microbatch_rows(input);
  std::vector<TensorPlan> tensors;
  tensors.push_back({"batch/x", TensorRole::batch, {rows, input.model.input_width()}, by_rows});
  tensors.push_back({"batch/y", TensorRole::batch, {rows, input.model.output_width()}, by_rows});
  for (const LinearSpec& layer : input.model.layers)
    tensors.push_back({layer.name + "/output", TensorRole::activation, {rows, layer.out}, by_rows});
  for (const ParameterSpec& parameter : input.model.parameters()) {
    const auto add = [&](TensorRole role, const std::string& suffix) {
      tensors.push_back({parameter.path + suffix, role, parameter.shape, replicated});
    };
    add(TensorRole::parameter, "");
    add(TensorRole::gradient, ".gradient");
    for (Size k = 1; k <= input.moments; ++k)
      add(TensorRole::moment, ".moment" + std::to_string(k));
  }
  return tensors;
}

}  // namespace tessera
