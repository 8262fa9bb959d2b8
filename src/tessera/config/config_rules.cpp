// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_fields.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/plan/pass/schedule.hpp>
#include <tessera/plan/pipeline/stages.hpp>

namespace tessera {
namespace {

constexpr Size largest = std::numeric_limits<Size>::max();

/// Returns the product of positive numbers, or `largest` if it is larger.
Size saturating_product(Size a, Size b) { return a > largest / b ? largest : a * b; }

Size saturating_sum(Size a, Size b) { return a > largest - b ? largest : a + b; }

/// Rejects the value of a key that depends on the kind of model.
[[noreturn]] void reject_key(const char* key, const Config& config, const std::string& allowed) {
  reject(key, setting_of(key).get(config), allowed);
}

void check_network(const Config& all, const ModelSpec& model) {
  const ModelConfig& config = all.model;
  Size elements = 0;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters) {
      Size product = 1;
      for (const Size extent : parameter.shape) product = saturating_product(product, extent);
      elements = saturating_sum(elements, product);
    }
  // Every parameter has a gradient and moments.
  if (elements > largest / (8 * size_of(DType::float64)))
    reject_key(size_key(config.kind), all, "gives more parameters than memory can address");
  const MixedPrecision mixed = all.training.distributed.mixed_precision;
  if (mixed == MixedPrecision::no) return;
  if (const auto type = all.training.distributed.model_reduce_dtype;
      type != ModelReduceType::state && all.training.numerics.reproducible)
    reject("distributed.model_reduce_dtype", name_of(type),
           "must be \"state\" with numerics.reproducible, because 16-bit sums depend on the mesh");
  if (config.dtype != DType::float32)
    reject("distributed.mixed_precision", name_of(mixed), "needs model.dtype = \"{}\"",
           name_of(DType::float32));
  if (config.matmul_precision != MatmulPrecision::strict)
    reject("model.matmul_precision", name_of(config.matmul_precision),
           "needs distributed.mixed_precision = \"{}\"", name_of(MixedPrecision::no));
}

void check_data(const Config& config, const ModelSpec& model) {
  const Size row =
      saturating_sum(saturating_product(model.input_positions, model.input_width),
                     saturating_product(model.output_positions(), model.target_width()));
  Size outputs = 0;
  for (const LayerSpec& layer : model.layers)
    outputs = saturating_sum(outputs, saturating_product(layer.positions(), layer.out()));
  // Every output has a gradient, and may be kept in other placements.
  constexpr Size most_outputs = largest / (8 * size_of(DType::float64));
  if (outputs > most_outputs)
    reject_key(size_key(config.model.kind), config,
               "gives more activations than memory can address");
  if (config.training.batch_size > most_outputs / std::max<Size>(outputs, 1))
    reject("training.batch_size", config.training.batch_size,
           "gives more activations than memory can address");
  if (config.data.samples == every_sample)
    reject("data.samples", "all", "must have been counted by count_samples()");
  const Size most_samples = largest / (2 * size_of(DType::float64)) / row;
  if (config.data.samples > most_samples)
    reject("data.samples", config.data.samples, "is more data than memory can address");
  if (config.data.validation_samples > most_samples - config.data.samples)
    reject("data.validation_samples", config.data.validation_samples,
           "is more data than memory can address");
  for (const char* key : {"training.validate_every", "training.patience"})
    if (config.data.validation_samples == 0 && !setting_of(key).is_default(config))
      reject_key(key, config, "needs data.validation_samples");
  row_of(config.data.kind).check(config.data, model);
}

/// A loss reads values, classes or residuals, and the model must predict the same. A layer that
/// adds to the loss adds one term per sample, so the loss must not be a mean over elements.
void check_loss(const Config& config, const ModelSpec& model) {
  const TrainingConfig& training = config.training;
  const auto suits = [&](LossKind kind) {
    return targets_of(kind) == model.targets && (!adds_loss(model) || loss_count(kind, 1, 2) == 1);
  };
  if (!suits(training.loss)) {
    std::vector<std::string_view> suitable;
    for (std::size_t kind = 0; kind < names_of<LossKind>.size(); ++kind)
      if (suits(static_cast<LossKind>(kind))) suitable.push_back(names_of<LossKind>[kind]);
    reject("training.loss", name_of(training.loss), "must be {} for model.kind = \"{}\"",
           suitable.size() > 1 ? "one of " + join(suitable) : to_toml(suitable[0]),
           name_of(config.model.kind));
  }
  if (training.ignore_index && model.targets != Targets::classes)
    reject("training.ignore_index", *training.ignore_index, "needs training.loss = \"{}\"",
           name_of(LossKind::cross_entropy));
}

/// Checks that ranks have shares of what this layout moves.
void check_muon(const TrainingConfig& config) {
  const MuonLayout layout = config.distributed.muon_layout;
  if (layout == MuonLayout::gather) return;
  if (config.optimizer.kind != OptimizerKind::muon)
    reject("distributed.muon_layout", name_of(layout), "needs optimizer.kind = \"muon\"");
  if (!row_of(config.distributed.strategy).shards.moments)
    reject("distributed.muon_layout", name_of(layout),
           "needs a strategy whose ranks share moments: zero1, zero2, fsdp or hybrid");
}

/// Checks that the sizes of the configuration are those of the launch.
void check_launch(const DistributedConfig& config, Size ranks) {
  if (ranks < 1 || ranks > std::numeric_limits<int>::max())
    reject("ranks", ranks, "must be from 1 to 2^31 - 1, the range of MPI ranks");
  if (config.num_nodes && config.num_processes_per_node) {
    const Size product = saturating_product(*config.num_nodes, *config.num_processes_per_node);
    const Size expected = config.world_size.value_or(ranks);
    if (product != expected)
      reject("distributed.num_nodes", *config.num_nodes,
             "times distributed.num_processes_per_node = {} must equal {}, {}",
             *config.num_processes_per_node,
             config.world_size ? "distributed.world_size" : "the number of ranks", expected);
  }
  if (config.world_size && *config.world_size != ranks)
    reject("distributed.world_size", *config.world_size, "must equal the number of ranks, {}",
           ranks);
  const Size tensor = config.tensor_parallel_size.value_or(1);
  const Size pipeline = config.pipeline_parallel_size.value_or(1);
  if (tensor > 1 && pipeline > 1 && ranks % saturating_product(tensor, pipeline) != 0)
    reject("distributed.tensor_parallel_size", tensor,
           "times distributed.pipeline_parallel_size = {} must divide the number of ranks, {}",
           pipeline, ranks);
  for (const auto& [key, number] :
       {std::pair{"distributed.num_nodes", config.num_nodes},
        {"distributed.num_processes_per_node", config.num_processes_per_node},
        {"distributed.tensor_parallel_size", config.tensor_parallel_size},
        {"distributed.pipeline_parallel_size", config.pipeline_parallel_size}})
    if (number && ranks % *number != 0)
      reject(key, *number, "must divide the number of ranks, {}", ranks);
}

/// Returns the named mesh with the sizes that the launch decides.
MeshShape named_mesh(const DistributedConfig& config, const Topology& topology) {
  const MeshSizes& sizes = config.mesh_shape;
  const std::vector<std::string>& names = config.mesh_axis_names;
  if (sizes.empty()) reject("distributed.mesh_axis_names", names, "needs distributed.mesh_shape");
  if (sizes.size() != names.size())
    reject("distributed.mesh_axis_names", names,
           "must have one name for each size of distributed.mesh_shape = " + to_toml(sizes));
  std::vector<Axis> axes;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    if (std::ranges::find(known_axes, names[a]) == known_axes.end())
      reject("distributed.mesh_axis_names", names,
             excerpt(to_toml(names[a])) + " " + must_be_one_of(names[a], known_axes));
    axes.push_back({names[a], sizes[a]});
  }
  try {
    return MeshShape::fit(axes, topology);
  } catch (const ConfigError& error) {
    reject("distributed.mesh_shape", sizes, error.allowed());
  }
}

void check_axis_size(const MeshShape& mesh, const char* axis, const char* key,
                     std::optional<Size> size) {
  if (size && *size != mesh.size_of(axis))
    reject(key, *size, "must equal the size of the mesh axis \"{}\", which is {}", axis,
           mesh.size_of(axis));
}

/// Makes a mesh from the parallel sizes: the axes larger than 1 in the order of known_axes, so that
/// groups of `model`, then those of `fsdp`, are neighbouring ranks. `data` takes the remaining
/// ranks, or `model` does if the strategy splits only layers. If the strategy shards over `fsdp`
/// only, that axis takes the ranks of a node that `model` leaves.
MeshShape mesh_from_sizes(const DistributedConfig& config, const Topology& topology) {
  const StrategyRow& row = row_of(config.strategy);
  const Size ranks = topology.ranks(), pipeline = config.pipeline_parallel_size.value_or(1);
  const Size model = row.splits_batch ? config.tensor_parallel_size.value_or(1) : size_rest;
  const std::optional<Size> per_node = topology.per_node();
  const Size fsdp = row.over_fsdp_only && per_node && *per_node % model == 0
                        ? std::gcd(*per_node / model, ranks / (pipeline * model))
                        : 1;
  std::vector<Axis> axes = MeshShape::fit({{"pipeline", pipeline},
                                           {"data", row.splits_batch ? size_rest : 1},
                                           {"fsdp", fsdp},
                                           {"model", model}},
                                          ranks)
                               .axes();
  std::erase_if(axes, [](const Axis& axis) { return axis.size == 1; });
  if (axes.empty()) axes.push_back({row.splits_batch ? "data" : "model", 1});
  return MeshShape(std::move(axes));
}

}  // namespace

MeshShape resolve_mesh(const Config& config, const Topology& topology) {
  const DistributedConfig& distributed = config.training.distributed;
  const bool named = !distributed.mesh_shape.empty() || !distributed.mesh_axis_names.empty();
  const MeshShape mesh =
      named ? named_mesh(distributed, topology) : mesh_from_sizes(distributed, topology);
  check_axis_size(mesh, "model", "distributed.tensor_parallel_size",
                  distributed.tensor_parallel_size);
  check_axis_size(mesh, "pipeline", "distributed.pipeline_parallel_size",
                  distributed.pipeline_parallel_size);
  check_mesh_of_strategy(distributed, mesh);
  return mesh;
}

namespace {

void check_all(const Config& config, const Topology& topology) {
  check_settings(config);
  check(settings(), config);
  const ModelSpec model = make_model(config.model);
  check_network(config, model);
  check_data(config, model);
  check_loss(config, model);
  if (config.training.batch_size > config.data.samples)
    reject("training.batch_size", config.training.batch_size, "must be at most data.samples = {}",
           config.data.samples);
  check_launch(config.training.distributed, topology.ranks());
  const MeshShape mesh = resolve_mesh(config, topology);
  check_options_of_strategy(config.training.distributed, mesh);
  check_muon(config.training);
  check_sharding(config, mesh, model);
  PlanInput input = plan_input(config, mesh);
  place_layers(input);  // rejects specs that contradict the rules, models that need whole samples
  split_into_stages(input);
  set_grains(input);
  order_passes(listed_passes(input));
}

/// Says in the message, "key = value: allowed", if the value is the default, which the user need
/// not have given.
ConfigError with_default_named(const ConfigError& error, const Config& config) {
  const std::string text = error.what(), key = text.substr(0, text.find(" = "));
  const auto setting = std::ranges::find(settings(), key, &Setting::key);
  const std::size_t end = text.rfind(": " + error.allowed());
  if (setting == settings().end() || end == text.npos || !setting->is_default(config)) return error;
  const std::size_t begin = key.size() + 3;
  return {key, text.substr(begin, end - begin) + " (default)", std::string_view(error.allowed())};
}

}  // namespace

void validate(const Config& config, const Topology& topology) {
  try {
    check_all(config, topology);
  } catch (const ConfigError& error) {
    throw with_default_named(error, config);
  }
}

void count_samples(Config& config) {
  if (config.data.samples != every_sample) return;
  const ModelSpec model = make_model(config.model);
  check(data_fields(), config.data);
  row_of(config.data.kind).check(config.data, model);
  config.data.samples = samples_in_files(config.data, model);
}

void check_nodes(const DistributedConfig& config, const Topology& launch) {
  const std::vector<Size> ranks_by_node = launch.ranks_by_node();
  const Size nodes = launch.num_nodes();
  if (config.num_nodes && *config.num_nodes != nodes)
    reject("distributed.num_nodes", *config.num_nodes,
           "must equal the number of nodes of this launch, {}", nodes);
  for (std::size_t node = 0; node < ranks_by_node.size(); ++node)
    if (config.num_processes_per_node && *config.num_processes_per_node != ranks_by_node[node])
      reject("distributed.num_processes_per_node", *config.num_processes_per_node,
             "must equal the number of ranks on every node, but this launch has {} on "
             "node {} of {}",
             ranks_by_node[node], node + 1, nodes);
}

void check_threads(const DistributedConfig& config, Size threads) {
  if (config.threads && *config.threads != threads)
    reject("distributed.threads", *config.threads,
           "must equal the number of threads per rank, which is {} in this launch; set "
           "OMP_NUM_THREADS={}",
           threads, *config.threads);
}

DType compute_type(const Config& config) {
  const MixedPrecision mixed = config.training.distributed.mixed_precision;
  if (mixed == MixedPrecision::no) return config.model.dtype;
  return mixed == MixedPrecision::bf16 ? DType::bfloat16 : DType::float16;
}

std::optional<HalfProducts> half_products(const Config& config) {
  if (config.training.numerics.reproducible &&
      (is_half(compute_type(config)) || config.model.matmul_precision == MatmulPrecision::tf32))
    return HalfProducts::emulated;
  return half_products(compute_type(config), config.model.matmul_precision);
}

Size planned_ranks(const Config& config) {
  const DistributedConfig& distributed = config.training.distributed;
  if (distributed.world_size) return *distributed.world_size;
  if (distributed.num_nodes && distributed.num_processes_per_node)
    return saturating_product(*distributed.num_nodes, *distributed.num_processes_per_node);
  Size ranks = 1;
  for (Size size : distributed.mesh_shape) {
    if (size == size_nodes) size = distributed.num_nodes.value_or(1);
    if (size == size_per_node) size = distributed.num_processes_per_node.value_or(1);
    if (size > 0) ranks = saturating_product(ranks, size);
  }
  if (!distributed.mesh_shape.empty()) return ranks;
  return saturating_product(distributed.tensor_parallel_size.value_or(1),
                            distributed.pipeline_parallel_size.value_or(1));
}

Topology planned_topology(const Config& config) {
  const DistributedConfig& distributed = config.training.distributed;
  const Size ranks = planned_ranks(config);
  const Size nodes = distributed.num_nodes.value_or(0);
  // validate() rejects sizes that do not fit.
  if (ranks > std::numeric_limits<int>::max()) return ranks;
  if (distributed.num_processes_per_node)
    return Topology::blocks(ranks, *distributed.num_processes_per_node);
  return nodes > 0 && ranks % nodes == 0 ? Topology::blocks(ranks, ranks / nodes) : ranks;
}

void set_mesh(DistributedConfig& config, const MeshShape& mesh) {
  config.world_size = mesh.num_ranks();
  config.mesh_axis_names = mesh.axis_names();
  config.mesh_shape.clear();
  for (const Axis& axis : mesh.axes()) config.mesh_shape.push_back(axis.size);
  config.tensor_parallel_size = mesh.size_of("model");
  config.pipeline_parallel_size = mesh.size_of("pipeline");
}

Config resolve(const Config& config, const Topology& topology) {
  validate(config, topology);
  Config resolved = config;
  set_mesh(resolved.training.distributed, resolve_mesh(config, topology));
  return resolved;
}

}  // namespace tessera
