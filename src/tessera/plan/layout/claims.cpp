// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/layout/claims.hpp>
#include <tessera/tensor/mesh_axes.hpp>

namespace tessera {
namespace {

constexpr auto of_model = axis_row("model").claims, of_context = axis_row("context").claims;

/// Returns the indices that have a dimension of AxisRow::claims.
std::string with_dimension(std::string_view indices, std::string_view dimension) {
  std::string found;
  if (dimension.empty()) return found;
  for (const char index : indices)
    if (dimension_of(index) == (dimension == own_columns ? "" : dimension)) found.push_back(index);
  return found;
}

}  // namespace

Layout placements_of(const LayerSpec& layer, std::string_view split) {
  const Expression& expression = layer.kind->expression;
  Layout along = derive(expression, split);
  // The columns that belong to one gate stay together.
  const auto keep_gates = [&](Placement& placement, std::string_view indices) {
    if (placement.is_shard(1) && indices.ends_with(std::string(split) + "g"))
      placement = placement.in_units(layer.total('g'));
  };
  keep_gates(along.output, expression.output);
  keep_gates(along.output_gradient, expression.output);
  for (std::size_t i = 0; i < along.inputs.size(); ++i) {
    keep_gates(along.inputs[i], expression.inputs[i].indices);
    keep_gates(along.input_gradients[i], expression.inputs[i].indices);
  }
  along.inputs.resize(layer.inputs.size());
  along.input_gradients.resize(layer.inputs.size());
  along.parameters.resize(layer.parameters.size());
  along.parameter_gradients.resize(layer.parameters.size());
  return along;
}

std::vector<Layout> model_choices(const LayerSpec& layer) {
  const Expression& expression = layer.kind->expression;
  const std::string all = splittable(expression);
  std::string split;
  for (const std::string_view dimension : of_model) split += with_dimension(all, dimension);
  // Rows are split where nothing is summed over and no dimension has a name of its own.
  const bool has_name = !split.empty() && !dimension_of(split[0]).empty();
  const bool has_positions = !with_dimension(all, "positions").empty();
  if (!has_name && has_positions && !has_sums(expression)) split += 's';
  std::vector<Layout> choices{placements_of(layer, {})};
  for (const char index : split) choices.push_back(placements_of(layer, {&index, 1}));
  return choices;
}

bool splits_rows(const Layout& along) { return along.output.is_shard(0); }

std::string context_split(const Expression& expression, ContextAttention attention) {
  const std::string all = splittable(expression);
  if (attention == ContextAttention::all_to_all && !expression.streamed.empty())
    if (const std::string heads = with_dimension(all, "heads"); !heads.empty()) return heads;
  for (const std::string_view dimension : of_context) {
    const std::string split = with_dimension(all, dimension);
    if (split.empty()) continue;
    const bool streams = attention == ContextAttention::ring;
    return split[0] + (streams ? with_dimension(expression.streamed, dimension) : "");
  }
  return {};
}

bool has_context(const Expression& expression) {
  std::string indices(expression.output);
  for (const Operand& input : expression.inputs) indices += input.indices;
  return std::any_of(of_context.begin(), of_context.end(), [&](std::string_view dimension) {
    return !with_dimension(indices, dimension).empty();
  });
}

}  // namespace tessera
