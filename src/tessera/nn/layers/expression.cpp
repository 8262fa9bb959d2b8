// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/nn/layers/layer_kind.hpp>

namespace tessera {
namespace {

constexpr std::pair<char, std::string_view> dimensions[] = {
    {'s', "batch"},   {'p', "positions"}, {'t', "positions"}, {'k', "slots"}, {'e', "experts"},
    {'f', "experts"}, {'h', "heads"},     {'m', "modes"},     {'q', "modes"}, {'v', "vocab"}};

bool has(std::string_view indices, std::string_view any_of) {
  return indices.find_first_of(any_of) != std::string_view::npos;
}

template <class F>
void visit_operands(const Expression& expression, const F& f) {
  for (const Operand& operand : expression.inputs) f(operand);
  for (const Operand& operand : expression.parameters) f(operand);
}

/// Returns true if the tensor does not have the index, or has it first in a dimension. Rows are
/// split sample by sample, so the index of samples may come before it.
bool can_cut(std::string_view indices, char index) {
  const std::size_t at = indices.find(index);
  return at == std::string_view::npos || at == 0 || indices[at - 1] == ',' ||
         indices.substr(0, at) == "s";
}

/// Returns Shard of the dimension that has the index, or else `otherwise`.
Placement shard_or(std::string_view indices, std::string_view split, Placement otherwise) {
  const std::size_t at = indices.find_first_of(split);
  if (at == std::string_view::npos) return otherwise;
  const auto before = indices.substr(0, at);
  return Placement::shard(static_cast<int>(std::count(before.begin(), before.end(), ',')));
}

/// Returns true if a parameter and the first input have an index over which the output sums.
bool is_factor(const Expression& expression, std::size_t parameter) {
  const std::string_view x = expression.inputs[0].indices;
  return std::any_of(x.begin(), x.end(), [&](char index) {
    return index != ',' && has(expression.parameters[parameter].indices, {&index, 1}) &&
           !has(expression.output, {&index, 1});
  });
}

/// Return the indices of the rows of a matrix, and of its columns.
std::string_view row_indices(std::string_view indices) {
  return indices.substr(0, indices.find(','));
}
std::string_view column_indices(std::string_view indices) {
  return indices.substr(indices.find(',') + 1);
}

}  // namespace

Size LayerSpec::columns_of(std::size_t input) const {
  return size(column_indices(kind->expression.inputs[input].indices));
}
Size LayerSpec::positions_of(std::size_t input) const {
  return size(row_indices(kind->expression.inputs[input].indices));
}
Size LayerSpec::out() const { return size(column_indices(kind->expression.output)); }
Size LayerSpec::positions() const { return size(row_indices(kind->expression.output)); }

Size LayerSpec::first_column() const {
  const std::string_view all = column_indices(kind->expression.output);
  return part(all[0]).begin * size(all.substr(1));
}

Size LayerSpec::experts() const {
  const Expression& expression = kind->expression;
  const bool splits = has(expression.output, "e") && has(expression.inputs[0].indices, "e") &&
                      !has(expression.whole, "e");
  return splits ? total('e') : 0;
}

bool is_kernel(const LayerSpec& layer, std::size_t parameter) {
  return is_factor(layer.kind->expression, parameter);
}

LayerProducts layer_products(const LayerSpec& layer, Size samples) {
  const LayerKind& kind = *layer.kind;
  if (kind.products != nullptr) return kind.products(layer, samples);
  const Expression& expression = kind.expression;
  if (!is_factor(expression, 0)) return {};
  Size m = samples, n = 1, k = 1, times = 1;
  for (const auto& [index, extent] : layer.sizes) {
    const std::string_view letter(&index, 1);
    if (!has(expression.output, letter))
      k *= extent.own.count;
    else if (!has(expression.inputs[0].indices, letter))
      n *= extent.own.count;
    else if (has(expression.parameters[0].indices, letter))
      times *= extent.own.count;
    else
      m *= extent.own.count;
  }
  const Size launches = layer.tiling.launches(times, kind.at_once(layer));
  LayerProducts all{{{m, n, k, times, launches}}, {{k, n, m, times, launches}}};
  if (layer.tied_to >= 0) all.backward = {{n, k, m, times, launches}};  // stored as (out, in)
  if (layer.inputs[0] != LayerSpec::data) all.backward.push_back({m, k, n, times, launches});
  return all;
}

std::string_view dimension_of(char index) {
  for (const auto& [letter, dimension] : dimensions)
    if (letter == index) return dimension;
  return {};
}

std::string splittable(const Expression& expression) {
  std::string found;
  const auto add = [&](std::string_view indices) {
    for (const char index : indices) {
      if (index == ',' || has(found, {&index, 1}) || has(expression.whole, {&index, 1})) continue;
      bool can = can_cut(expression.output, index);
      visit_operands(expression, [&](const Operand& operand) {
        can = can && can_cut(operand.indices, index) && can_cut(operand.gradient_indices(), index);
      });
      if (can) found.push_back(index);
    }
  };
  add(expression.output);
  visit_operands(expression, [&](const Operand& operand) { add(operand.indices); });
  return found;
}

bool has_sums(const Expression& expression) {
  bool sums = false;
  visit_operands(expression, [&](const Operand& operand) {
    for (const char index : operand.indices) {
      const std::string_view letter(&index, 1);
      if (index != ',' && !has(expression.output, letter))
        sums = sums || !has(expression.whole, letter) || has(expression.streamed, letter);
    }
  });
  return sums;
}

Layout derive(const Expression& expression, std::string_view split) {
  const auto term_has_it = [&](int term) {
    bool found = has(expression.output, split);
    visit_operands(expression, [&](const Operand& operand) {
      found = found || (operand.term == term && has(operand.indices, split));
    });
    return found;
  };
  bool is_summed = false;
  visit_operands(expression, [&](const Operand& operand) {
    is_summed = is_summed || has(operand.indices, split);
  });
  Layout layout{.split = std::string(split)};
  layout.output = shard_or(expression.output, split, is_summed ? as_terms : Placement());
  layout.output_gradient = shard_or(expression.output, split, {});
  const auto place = [&](const Operand& operand, std::vector<Placement>& tensors,
                         std::vector<Placement>& gradients) {
    if (operand.indices.empty()) return;
    tensors.push_back(shard_or(operand.indices, split, {}));
    const bool is_sum = !operand.gradient_indices().empty() && term_has_it(operand.term);
    gradients.push_back(
        shard_or(operand.gradient_indices(), split, is_sum ? as_terms : Placement()));
  };
  for (const Operand& input : expression.inputs)
    place(input, layout.inputs, layout.input_gradients);
  for (const Operand& parameter : expression.parameters)
    place(parameter, layout.parameters, layout.parameter_gradients);
  return layout;
}

}  // namespace tessera
