// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {
namespace {

/// Returns the beginning of names in the file: "" for parameters, 0, and "moment1/" for 1.
std::string group_of(Size group) { return group == 0 ? "" : fmt::format("moment{}/", group); }

constexpr std::array checkpoint_roles{TensorRole::parameter, TensorRole::moment};

}  // namespace

std::vector<CheckpointTensor> checkpoint_tensors(const Plan& plan) {
  std::vector<CheckpointTensor> tensors;
  for (Size group = 0; group <= plan.input.moments; ++group)
    for (std::size_t l = 0; l < plan.input.model.layers.size(); ++l)
      for (std::size_t p = 0; p < plan.input.model.layers[l].parameters.size(); ++p) {
        const LayerSpec& layer = plan.input.model.layers[l];
        const ParameterSpec& parameter = layer.parameters[p];
        if (group > 1 && is_orthogonalized(plan.input, static_cast<Size>(l), p)) continue;
        tensors.push_back({group_of(group) + path_of(layer, parameter), parameter.shape,
                           parameter.logical_axes,
                           group == 0 ? plan.input.state_type : plan.input.moments_type()});
      }
  return tensors;
}

std::vector<CheckpointPart> checkpoint_parts(const Plan& plan, Size rank) {
  std::map<std::string, Size> numbers;
  for (const CheckpointTensor& tensor : checkpoint_tensors(plan))
    numbers.emplace(tensor.name, static_cast<Size>(numbers.size()));
  const ParameterLayout& layout = plan.stage(rank).parameters;
  std::map<Size, CheckpointPart> parts;
  for (const TensorRole role : checkpoint_roles)
    for (TensorPart& part : tensor_parts(plan, rank, role)) {
      const std::string& path = layout.parameters[part.slot.parameter].path;
      const Size group = role == TensorRole::parameter ? 0 : part.moment + 1;
      const Size number = numbers.at(group_of(group) + path);
      parts.emplace(number, CheckpointPart{number, std::move(part)});
    }
  std::vector<CheckpointPart> in_order;
  for (auto& [number, part] : parts) in_order.push_back(std::move(part));
  return in_order;
}

CheckpointBytes checkpoint_bytes(const Plan& plan, Size rank) {
  CheckpointBytes bytes;
  for (const TensorRole role : checkpoint_roles)
    for (TensorPart& tensor : tensor_parts(plan, rank, role)) {
      const CheckpointPart part{0, std::move(tensor)};
      bytes.written += part.written().count * size_of(part.part.slot.type);
      bytes.read += part.part.kept.count * size_of(part.part.slot.type);
    }
  return bytes;
}

}  // namespace tessera
