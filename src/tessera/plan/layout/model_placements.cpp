// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/layout/claims.hpp>

namespace tessera {
namespace {

/// Returns the text in quotes. Invalid UTF-8 is replaced.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

[[noreturn]] void reject_spec(const std::string& path, const PartitionSpec& spec,
                              const std::string& allowed) {
  throw ConfigError("distributed.parameter_specs." + quoted(path), quoted(spec.to_string()),
                    allowed);
}

/// Returns the parameter with this path. Throws ConfigError if the model has none.
const ParameterSpec& parameter_at(const ModelSpec& model, const std::string& path,
                                  const PartitionSpec& spec) {
  std::vector<std::string> paths;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters) {
      paths.push_back(path_of(layer, parameter));
      if (paths.back() == path) return parameter;
    }
  const std::size_t shown = std::min<std::size_t>(6, paths.size());
  const auto nearest = suggest_nearest(path, paths);
  reject_spec(path, spec,
              "is not a parameter of the model; " +
                  (nearest ? fmt::format("did you mean \"{}\"?", *nearest)
                           : fmt::format("it has {}{}", join(std::span(paths).first(shown)),
                                         shown < paths.size() ? ", ..." : "")));
}

/// Checks that each spec names a parameter of the model, has no more dimensions than the parameter,
/// and names the axis `model` at most once.
void check_specs(const PlanInput& input) {
  for (const auto& [path, spec] : input.parameter_specs) {
    const std::size_t rank = parameter_at(input.model, path, spec).shape.size();
    if (spec.dims.size() > rank)
      reject_spec(path, spec,
                  fmt::format("must be no longer than the {} of the tensor",
                              counted(static_cast<Size>(rank), "dimension")));
    std::size_t split = 0;
    for (const PartitionSpec::Entry& entry : spec.dims) {
      for (const std::string& axis : entry)
        if (axis != "model")
          reject_spec(
              path, spec,
              "may name only the axis model, because over data and fsdp the strategy shards "
              "parameters, as flat units");
      split += entry.size();
    }
    if (split > 1) reject_spec(path, spec, "may name the axis model only once");
    if (split > 0 && !input.mesh.find("model"))
      reject_spec(path, spec, "needs a mesh axis model; the mesh is " + input.mesh.to_string());
  }
}

/// Returns the placement along `model` that a spec asks for. The strategy shards flat buckets over
/// the other axes, not dimensions. `rank` is the number of dimensions.
Placement placement_of(const PlanInput& input, const PartitionSpec& spec, std::size_t rank) {
  const auto model = input.mesh.find("model");
  if (!model || input.mesh.size_of("model") == 1) return Placement::replicate();
  return to_placements(spec, input.mesh, rank)[*model];
}

Placement ruled_placement(const PlanInput& input, const std::vector<std::string>& logical_axes) {
  return placement_of(input, partition_spec_for_names(logical_axes, input.rules, input.mesh),
                      logical_axes.size());
}

/// Returns the placement of a parameter that its spec asks for or, without a spec, the rules.
Placement asked_placement(const PlanInput& input, const std::string& path,
                          const ParameterSpec& parameter) {
  const auto given = input.parameter_specs.find(path);
  return given == input.parameter_specs.end()
             ? ruled_placement(input, parameter.logical_axes)
             : placement_of(input, given->second, parameter.shape.size());
}

/// Returns the placement of a layer's output. Input data is replicated along `model`.
Placement output_placement(const std::vector<Layout>& layers, Size layer) {
  return layer == LayerSpec::data ? Placement::replicate() : layers[layer].output;
}

class Chooser {
 public:
  explicit Chooser(const PlanInput& input) : input_(input) {}

  std::vector<Layout> choose() {
    for (std::size_t l = 0; l < input_.model.layers.size(); ++l) {
      chosen_.push_back(best_of(l));
      check_given_specs(input_.model.layers[l], chosen_.back());
      if (input_.numerics.reproducible) continue;  // parts are whole groups: split_in_blocks()
      check_groups(input_.model.layers[l], chosen_.back());
      check_parts(input_.model.layers[l], chosen_.back());
      repeat_groups(input_.model.layers[l], chosen_.back());
    }
    return std::move(chosen_);
  }

 private:
  Layout best_of(std::size_t l) const {
    const LayerSpec& layer = input_.model.layers[l];
    const std::vector<Layout> all = model_choices(layer);
    if (!layer.kind->rules_choose) return kept_split(l, all);
    if (layer.tied_to >= 0) return split_as_owner(layer, all);
    const auto asked = std::find_if(
        all.begin(), all.end(), [&](const Layout& along) { return is_asked_for(layer, along); });
    if (asked == all.end()) reject_placements(layer);
    return *asked;
  }

  /// Returns the choice with the placement of the parameter that another layer owns.
  Layout split_as_owner(const LayerSpec& layer, const std::vector<Layout>& all) const {
    const Placement owned = chosen_[layer.tied_to].parameters[0];
    return *std::find_if(all.begin(), all.end(), [&](const Layout& along) {
      return derive(layer.kind->expression, along.split).parameters[0] == owned;
    });
  }

  /// Returns the choice that splits rows, if the layer may; else the first one that splits columns,
  /// if an input is split; else that with whole tensors.
  Layout kept_split(std::size_t l, const std::vector<Layout>& all) const {
    const bool has_columns = all.size() > 1 && !splits_rows(all[1]);
    if (splits_rows(all.back()) && may_split_rows(l, has_columns)) return all.back();
    const std::vector<Size>& inputs = input_.model.layers[l].inputs;
    const bool is_split = std::any_of(inputs.begin(), inputs.end(), [&](Size i) {
      return output_placement(chosen_, i).is_shard();
    });
    return all[is_split && has_columns ? 1 : 0];
  }

  /// Throws ConfigError for placements of parameters that the layer cannot compute with. It names
  /// the spec or the rule that the user has given.
  [[noreturn]] void reject_placements(const LayerSpec& layer) const {
    std::vector<std::string> asked;
    for (const ParameterSpec& parameter : layer.parameters) {
      const Placement placement = asked_placement(input_, path_of(layer, parameter), parameter);
      asked.push_back(spec_text(placement, parameter) + " for " + parameter.name);
    }
    const std::string reason = fmt::format("the {} layer {} cannot be split along model with {}",
                                           layer.kind->name, layer.name, join(asked));
    for (const ParameterSpec& parameter : layer.parameters) {
      const std::string path = path_of(layer, parameter);
      if (const auto given = input_.parameter_specs.find(path);
          given != input_.parameter_specs.end())
        reject_spec(path, given->second, reason);
    }
    // A rule that splits explains more than one that does not.
    const MeshRules defaults = default_rules();
    for (const bool splits : {true, false})
      for (const ParameterSpec& parameter : layer.parameters)
        for (const std::string& name : parameter.logical_axes) {
          if (name.empty()) continue;
          const std::vector<std::string>& axes = axes_of(input_.rules, name);
          if (axes != axes_of(defaults, name) && axes.empty() != splits)
            throw ConfigError("distributed.mesh_rules." + name, nlohmann::json(axes).dump(),
                              reason);
        }
    throw ConfigError("mesh", input_.mesh.to_string(), reason);
  }

  static std::string spec_text(Placement placement, const ParameterSpec& parameter) {
    PartitionSpec spec;
    spec.dims.resize(parameter.shape.size());
    if (placement.is_shard()) spec.dims[placement.dim()].emplace_back("model");
    return spec.to_string();
  }

  /// Checks that the ranks of `model` divide the groups of columns, such as heads or frequencies,
  /// evenly.
  void check_groups(const LayerSpec& layer, const Layout& along) const {
    const GroupsKey& key = layer.groups;
    if (key.name.empty() || along.split.empty() || splits_rows(along)) return;
    const Size ranks = input_.mesh.size_of("model"),
               count = key.may_repeat ? key.value : layer.total(along.split[0]);
    if (count % ranks == 0 || repeats_of(layer, along) > 1) return;
    throw ConfigError(key.name, std::to_string(key.value),
                      "{}must be a multiple of the {} ranks of the mesh axis model{}",
                      count == key.value ? "" : fmt::format("makes {} {}, which ", count, key.noun),
                      ranks, key.may_repeat ? ", or divide them evenly" : "");
  }

  /// Returns the number of ranks that have the same groups of columns: several, if there are more
  /// ranks than groups.
  Size repeats_of(const LayerSpec& layer, const Layout& along) const {
    const Size ranks = input_.mesh.size_of("model"), groups = layer.groups.value;
    const bool repeats = layer.groups.may_repeat && !along.split.empty() && !splits_rows(along) &&
                         ranks > groups && ranks % groups == 0;
    return repeats ? ranks / groups : 1;
  }

  /// Places groups of columns on several ranks each, if there are more ranks than groups. The ranks
  /// of a group store its parameters, and each has a term of their gradients. They split its index
  /// u, which numbers the queries of a key.
  void repeat_groups(const LayerSpec& layer, Layout& along) const {
    along.repeats = repeats_of(layer, along);
    if (along.repeats == 1) return;
    const auto repeat = [&](Placement& placement, std::string_view indices) {
      if (placement.is_shard() && indices.find('u') == std::string_view::npos)
        placement = placement.on_every(along.repeats);
    };
    const Expression& expression = layer.kind->expression;
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      repeat(along.inputs[i], expression.inputs[i].indices);
      repeat(along.input_gradients[i], expression.inputs[i].indices);
    }
    repeat(along.output, expression.output);
    repeat(along.output_gradient, expression.output);
    for (Placement& parameter : along.parameters) repeat(parameter, "");
  }

  /// Checks that balanced splits cut all tensors of the layer at the same values of the index.
  /// Tensors with equal extents are cut alike.
  void check_parts(const LayerSpec& layer, const Layout& along) const {
    if (layer.groups.may_repeat) return check_heads(layer, along);
    const Size ranks = input_.mesh.size_of("model");
    std::vector<Size> split;  // extents
    for (std::size_t i = 0; i < layer.inputs.size(); ++i)
      if (along.inputs[i].is_shard(1))
        split.push_back(layer.columns_of(i) / along.inputs[i].unit());
    if (along.output.is_shard(1)) split.push_back(layer.out() / along.output.unit());
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      if (along.parameters[p].is_shard())
        split.push_back(layer.parameters[p].shape[along.parameters[p].dim()] / along.output.unit());
    for (const Size extent : split)
      if (extent != split[0] && (extent % ranks != 0 || split[0] % ranks != 0))
        throw ConfigError("mesh", input_.mesh.to_string(),
                          "model cannot split the {} layer {} evenly: {} ranks do not divide {}",
                          layer.kind->name, layer.name, ranks, std::min(extent, split[0]));
  }

  /// Checks that the ranks of `model` divide the queries' heads evenly, of which several read one
  /// group of keys.
  void check_heads(const LayerSpec& layer, const Layout& along) const {
    const Size ranks = input_.mesh.size_of("model"), heads = layer.total('h') * layer.total('u');
    if (along.split == "h" && layer.sizes.contains('u') && heads % ranks != 0)
      throw ConfigError("model.transformer.heads", std::to_string(heads),
                        "must be a multiple of the {} ranks of the mesh axis model", ranks);
  }

  bool is_asked_for(const LayerSpec& layer, const Layout& along) const {
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      if (asked_placement(input_, path_of(layer, layer.parameters[p]), layer.parameters[p]) !=
          along.parameters[p])
        return false;
    if (!layer.parameters.empty()) return true;
    // Without parameters, the rule for the first index of the output's columns chooses.
    const std::string_view output = layer.kind->expression.output;
    const std::string columns(dimension_of(output[output.find(',') + 1]));
    return ruled_placement(input_, {"", columns}) == along.output;
  }

  /// Returns true if layer `l` may split rows: it has no columns to split, or it reads a sum over
  /// `model` or the output of a layer that splits rows. The last layer may not, because the loss
  /// reads all rows.
  bool may_split_rows(std::size_t l, bool has_columns) const {
    if (!input_.sequence_parallel || l + 1 == input_.model.layers.size()) return false;
    if (!has_columns && input_.mesh.size_of("model") > 1) return true;
    const std::vector<Size>& inputs = input_.model.layers[l].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](Size i) {
      const Placement placement = output_placement(chosen_, i);
      return placement.is_partial() || placement.is_shard(0);
    });
  }

  /// Checks that each spec agrees with the placements of its layer.
  void check_given_specs(const LayerSpec& layer, const Layout& along) const {
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      const ParameterSpec& parameter = layer.parameters[p];
      const std::string path = path_of(layer, parameter);
      const auto given = input_.parameter_specs.find(path);
      if (given == input_.parameter_specs.end()) continue;
      if (placement_of(input_, given->second, parameter.shape.size()) != along.parameters[p])
        reject_spec(
            path, given->second,
            fmt::format("must be \"{}\", to match the columns of {}",
                        along.parameters[p].is_shard() ? "P('model')" : "P(None)", layer.name));
    }
  }

  const PlanInput& input_;
  std::vector<Layout> chosen_;
};

void check_sequence_parallel(const PlanInput& input, const std::vector<Layout>& layers) {
  if (std::none_of(layers.begin(), layers.end(), splits_rows))
    throw ConfigError("distributed.sequence_parallel", "true",
                      "needs a row-parallel layer followed by another layer; this model has none");
  if (input.model_overlap && input.numerics.reproducible)
    throw ConfigError("distributed.model_overlap", "true",
                      "must be false with numerics.reproducible, because a ring adds in the order "
                      "of its ranks");
  const std::size_t model = *input.mesh.find("model");
  for (const std::size_t axis : replicating_axes(input.mesh))
    if (axis > model)
      throw ConfigError("distributed.sequence_parallel", "true",
                        "needs the mesh axis model to come after " + input.mesh.axes()[axis].name);
}

}  // namespace

std::vector<Layout> choose_along_model(const PlanInput& input) {
  check_specs(input);
  std::vector<Layout> layers = Chooser(input).choose();
  if (input.sequence_parallel && input.mesh.size_of("model") > 1)
    check_sequence_parallel(input, layers);
  return layers;
}

}  // namespace tessera
