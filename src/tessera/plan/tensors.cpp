// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <tessera/base/split.hpp>
#include <tessera/plan/tensors.hpp>
#include <tessera/plan/units.hpp>

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

std::vector<TensorPlan> place_tensors(const PlanInput& input, const Layouts& layouts) {
  const MeshShape& mesh = input.mesh;
  const Sharding sharding = sharding_on(input.strategy, mesh);
  const std::optional<std::size_t> model_axis = mesh.find("model");
  const auto along_model = [&](Placements placements, Placement placement) {
    if (model_axis) placements[*model_axis] = placement;
    return placements;
  };
  const Placements whole = replicated(mesh);
  Placements by_rows = whole;
  for (const std::string& axis : batch_axes(mesh)) by_rows[*mesh.find(axis)] = Placement::shard(0);

  const Size rows = first_microbatch_rows(input);
  std::vector<TensorPlan> tensors;
  tensors.push_back({"batch/x", TensorRole::batch, {rows, input.model.input_width()}, by_rows});
  tensors.push_back({"batch/y", TensorRole::batch, {rows, input.model.output_width()}, by_rows});
  for (Size l = 0; l < layouts.size(); ++l) {
    const LinearSpec& layer = input.model.layers[l];
    tensors.push_back({layer.name + "/output",
                       TensorRole::activation,
                       {rows, layer.out},
                       along_model(by_rows, layouts[l].output)});
  }
  for (const ParameterSpec& parameter : input.model.parameters()) {
    const LayerLayout& layout = layouts[parameter.layer];
    const Placements placements =
        along_model(whole, parameter.shape.size() == 2 ? layout.kernel : layout.bias());
    const auto add = [&](TensorRole role, const std::string& suffix, bool in_shares) {
      tensors.push_back(
          {parameter.path + suffix, role, parameter.shape, placements, in_shares, parameter.layer});
    };
    add(TensorRole::parameter, "", sharding.parameters);
    add(TensorRole::gradient, ".gradient", sharding.gradients);
    for (Size k = 1; k <= input.moments; ++k)
      add(TensorRole::moment, ".moment" + std::to_string(k), sharding.moments);
  }
  return tensors;
}

Range part_of_unit(const TensorPlan& tensor, const LinearSpec& layer) {
  const Size kernel = layer.in * layer.out;
  return tensor.shape.size() == 2 ? Range{0, kernel} : Range{kernel, layer.out};
}

Range kept_part(const TensorPlan& tensor, const ModelSpec& local, Range share) {
  const Range part = part_of_unit(tensor, local.layers[tensor.layer]);
  const Range kept = intersection(part, share);
  return {kept.begin - part.begin, kept.count};
}

}  // namespace tessera
