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
  Layout along = derive(layer.kind->expression, split);
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
  if (attention == ContextAttention::all_to_all)
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
