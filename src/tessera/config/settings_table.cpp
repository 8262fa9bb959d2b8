// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/setting_types.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/sharding_rules.hpp>

namespace tessera {
namespace {

/// A setting whose member `member(config)` names, with a check of (key, value) beyond the type.
template <class Member, class Check>
Setting setting(std::string key, std::string doc, Member member, Check check) {
  using T = std::decay_t<decltype(member(std::declval<Config&>()))>;
  if constexpr (std::is_enum_v<T>) doc += ": " + join(setting_types::names_of(T{}));
  Setting made{
      key, std::move(doc),
      [=](Config& c, const nlohmann::json& v) { setting_types::assign(key, v, member(c)); },
      [=](const Config& c) { return setting_types::as_json(member(c)); },
      [=](const Config& c) { check(key, member(c)); }};
  if constexpr (setting_types::is_table<T>)
    made.set_entry = [=](Config& c, const std::string& name, const nlohmann::json& v) {
      setting_types::assign_entry(key, name, v, member(c));
    };
  return made;
}

/// Any value of the type will do, or config_rules.cpp sees to it.
constexpr auto no_rule = [](const std::string&, const auto&) {};

constexpr auto one_of_names = [](const std::string& key, const auto& value) {
  auto copy = value;
  setting_types::assign(key, setting_types::as_json(value), copy);
};

constexpr auto positive = [](const std::string& key, const auto& value) {
  constexpr bool real = std::is_floating_point_v<std::decay_t<decltype(value)>>;
  if (!(value > 0) || !std::isfinite(static_cast<double>(value)))
    throw ConfigError(key, to_toml(value),
                      real ? "must be positive and finite" : "must be positive");
};

constexpr auto positive_if_set = [](const std::string& key, const auto& value) {
  if (value) positive(key, *value);
};

constexpr auto not_negative = [](const std::string& key, const auto& value) {
  constexpr bool real = std::is_floating_point_v<std::decay_t<decltype(value)>>;
  if (!(value >= 0) || !std::isfinite(static_cast<double>(value)))
    throw ConfigError(key, to_toml(value),
                      real ? "must be finite and not negative" : "must not be negative");
};

constexpr auto printable_seed = [](const std::string& key, std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw ConfigError(key, to_toml(value), "must be at most 2^63 - 1, TOML's largest integer");
};

/// A string out of a table of names.
template <const auto& known, class Member>
Setting named(std::string key, std::string doc, Member member) {
  std::vector<std::string_view> available;
  for (const KnownName& entry : known)
    if (entry.unavailable.empty()) available.push_back(entry.name);
  return setting(std::move(key), std::move(doc) + ": " + join(available), member,
                 [](const std::string& k, const std::string& v) { check_name(k, v, known); });
}

#define TESSERA_MEMBER(path) \
  [](auto& c) -> auto& { return c.path; }

std::vector<Setting> make_settings() {
  return {
      setting("model.kind", "kind of network", TESSERA_MEMBER(model.kind), one_of_names),
      setting("model.widths", "layer widths of an mlp: input, hidden ..., output",
              TESSERA_MEMBER(model.mlp.widths), no_rule),
      setting("model.residual_mlp.input_width", "columns of x",
              TESSERA_MEMBER(model.residual_mlp.input_width), positive),
      setting("model.residual_mlp.width", "width of the residual stream",
              TESSERA_MEMBER(model.residual_mlp.width), positive),
      setting("model.residual_mlp.inner_width", "width between fc1 and fc2 of a block",
              TESSERA_MEMBER(model.residual_mlp.inner_width), positive),
      setting("model.residual_mlp.blocks", "number of blocks x + fc2(activation(fc1(ln(x))))",
              TESSERA_MEMBER(model.residual_mlp.blocks), positive),
      setting("model.residual_mlp.output_width", "columns of y",
              TESSERA_MEMBER(model.residual_mlp.output_width), positive),
      setting("model.activation", "after every layer but the last (mlp), after fc1 (residual_mlp)",
              TESSERA_MEMBER(model.mlp.activation), one_of_names),
      setting("model.output_activation", "after the last layer",
              TESSERA_MEMBER(model.mlp.output_activation), one_of_names),
      setting("model.bias", "whether linear layers have a bias", TESSERA_MEMBER(model.mlp.bias),
              no_rule),
      setting("model.initializer", "distribution of the initial kernels (biases start at zero)",
              TESSERA_MEMBER(model.mlp.initializer), one_of_names),
      setting("model.seed", "seed of the initial parameters", TESSERA_MEMBER(model.mlp.seed),
              printable_seed),
      setting("model.dtype", "type of parameters, activations and messages",
              TESSERA_MEMBER(model.dtype), one_of_names),
      setting("model.matmul_precision", "precision of float32 matrix products",
              TESSERA_MEMBER(model.matmul_precision), one_of_names),

      setting("data.kind", "how samples are made", TESSERA_MEMBER(data.kind), one_of_names),
      setting("data.samples", "samples in the data set", TESSERA_MEMBER(data.samples), positive),
      setting("data.seed", "seed of the data set", TESSERA_MEMBER(data.seed), printable_seed),

      setting("training.num_epochs", "passes over the data", TESSERA_MEMBER(training.num_epochs),
              positive),
      setting("training.learning_rate", "base learning rate of the schedule",
              TESSERA_MEMBER(training.learning_rate), not_negative),
      setting("training.batch_size", "global batch: samples per step over all ranks",
              TESSERA_MEMBER(training.batch_size), positive),
      setting("training.microbatches", "parts of a batch whose gradients are accumulated",
              TESSERA_MEMBER(training.microbatches), positive),
      setting("training.loss", "loss over the global batch", TESSERA_MEMBER(training.loss),
              one_of_names),
      setting("training.check_finite", "stop at the first non-finite gradient",
              TESSERA_MEMBER(training.check_finite), no_rule),
      setting("training.check_replicas_every", "steps between replica checks; 0: never",
              TESSERA_MEMBER(training.check_replicas_every), not_negative),

      setting("optimizer.kind", "update rule", TESSERA_MEMBER(training.optimizer.kind),
              one_of_names),
      setting("optimizer.momentum", "momentum of sgd, below 1",
              TESSERA_MEMBER(training.optimizer.momentum), no_rule),
      setting("optimizer.nesterov", "Nesterov momentum for sgd",
              TESSERA_MEMBER(training.optimizer.nesterov), no_rule),
      setting("optimizer.beta1", "first-moment decay of adam and adamw, below 1",
              TESSERA_MEMBER(training.optimizer.beta1), no_rule),
      setting("optimizer.beta2", "second-moment decay of adam and adamw, below 1",
              TESSERA_MEMBER(training.optimizer.beta2), no_rule),
      setting("optimizer.epsilon", "denominator offset of adam, adamw and rmsprop",
              TESSERA_MEMBER(training.optimizer.epsilon), no_rule),
      setting("optimizer.weight_decay", "decoupled weight decay of adamw",
              TESSERA_MEMBER(training.optimizer.weight_decay), no_rule),
      setting("optimizer.decay", "running-average decay of rmsprop, below 1",
              TESSERA_MEMBER(training.optimizer.decay), no_rule),

      setting("schedule.kind", "learning-rate schedule", TESSERA_MEMBER(training.schedule.kind),
              one_of_names),
      setting("schedule.steps", "length of the schedule in steps; not for constant",
              TESSERA_MEMBER(training.schedule.steps), no_rule),
      setting("schedule.rate", "decay factor per schedule.steps; exponential and step",
              TESSERA_MEMBER(training.schedule.rate), no_rule),
      setting("schedule.end_factor", "final rate over base rate; cosine, linear, warmup_cosine",
              TESSERA_MEMBER(training.schedule.end_factor), no_rule),
      setting("schedule.warmup_steps", "warm-up, part of schedule.steps; warmup_cosine",
              TESSERA_MEMBER(training.schedule.warmup_steps), no_rule),
      setting("schedule.start_factor", "initial rate over base rate; warmup_cosine",
              TESSERA_MEMBER(training.schedule.start_factor), no_rule),

      setting("clip.global_norm", "clip the gradient to this global norm",
              TESSERA_MEMBER(training.clip.global_norm), no_rule),
      setting("clip.value", "clip gradient elements to this magnitude",
              TESSERA_MEMBER(training.clip.value), no_rule),

      setting("distributed.enabled", "false: the run must have one rank",
              TESSERA_MEMBER(training.distributed.enabled), no_rule),
      setting("distributed.world_size", "number of ranks",
              TESSERA_MEMBER(training.distributed.world_size), positive_if_set),
      named<known_backends>("distributed.backend", "message-passing library",
                            TESSERA_MEMBER(training.distributed.backend)),
      setting("distributed.num_nodes", "nodes of the launch",
              TESSERA_MEMBER(training.distributed.num_nodes), positive_if_set),
      setting("distributed.num_processes_per_node", "ranks on every node of the launch",
              TESSERA_MEMBER(training.distributed.num_processes_per_node), positive_if_set),
      setting("distributed.tensor_parallel_size", "size of the mesh axis model",
              TESSERA_MEMBER(training.distributed.tensor_parallel_size), positive_if_set),
      setting("distributed.pipeline_parallel_size", "size of the mesh axis pipeline",
              TESSERA_MEMBER(training.distributed.pipeline_parallel_size), positive_if_set),
      setting("distributed.mesh_shape",
              "axis sizes, slowest first; one may be -1 for the remaining ranks",
              TESSERA_MEMBER(training.distributed.mesh_shape), no_rule),
      setting("distributed.mesh_axis_names", "axis names, one per entry of mesh_shape",
              TESSERA_MEMBER(training.distributed.mesh_axis_names), no_rule),
      named<known_strategies>("distributed.strategy", "parallel strategy",
                              TESSERA_MEMBER(training.distributed.strategy)),
      named<known_gradient_reduce_types>("distributed.gradient_reduce_type",
                                         "how gradients are reduced over the batch",
                                         TESSERA_MEMBER(training.distributed.gradient_reduce_type)),
      named<known_mixed_precisions>("distributed.mixed_precision",
                                    "type used for compute and activations",
                                    TESSERA_MEMBER(training.distributed.mixed_precision)),
      setting("distributed.bucket_bytes", "largest gradient bucket, in bytes; data, zero1, zero2",
              TESSERA_MEMBER(training.distributed.bucket_bytes), positive),
      setting("distributed.overlap", "start reductions during the backward pass",
              TESSERA_MEMBER(training.distributed.overlap), no_rule),
      setting("distributed.prefetch", "gather the next unit while one is in use; fsdp, hybrid",
              TESSERA_MEMBER(training.distributed.prefetch), no_rule),
      setting("distributed.reshard_after_forward",
              "false: keep gathered units until their backward pass; fsdp, hybrid",
              TESSERA_MEMBER(training.distributed.reshard_after_forward), no_rule),
      setting("distributed.keep_last_unit",
              "keep the last unit gathered from forward to backward; fsdp, hybrid",
              TESSERA_MEMBER(training.distributed.keep_last_unit), no_rule),
      setting("distributed.mesh_rules", "mesh axes of batch, embed, mlp; default mlp = [\"model\"]",
              TESSERA_MEMBER(training.distributed.mesh_rules), check_mesh_rules),
      setting("distributed.parameter_specs", "PartitionSpec per parameter, overriding the rules",
              TESSERA_MEMBER(training.distributed.parameter_specs), check_parameter_specs),
      setting("distributed.sequence_parallel",
              "reduce-scatter and all-gather instead of all-reduce along model",
              TESSERA_MEMBER(training.distributed.sequence_parallel), no_rule),

      setting("comm.timeout_seconds", "abort the job when a collective takes longer; 0: never",
              TESSERA_MEMBER(comm.timeout_seconds), no_rule),
      setting("comm.check_collectives", "check that all ranks make the same collective call",
              TESSERA_MEMBER(comm.check_collectives), no_rule),
  };
}
#undef TESSERA_MEMBER

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = make_settings();
  return all;
}

}  // namespace tessera
