// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/base/fields.hpp>
#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/comm_fields.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/data/data_fields.hpp>
#include <tessera/nn/models/model_fields.hpp>
#include <tessera/optim/optim_fields.hpp>

namespace tessera {

// Values of types that only configurations have.

static std::string type_text(const Recomputation&) {
  return "\"none\", \"cheap\", \"attention\", \"block\", \"full\" or the number of layers per "
         "segment";
}
static void assign(std::string_view key, const nlohmann::json& value, Recomputation& member,
                   HintFor) {
  Recomputation given;
  const auto kind = value_named<Recomputed>(value.is_string() ? value.get<std::string>() : "");
  if (kind && *kind != Recomputed::units) {
    given.what = *kind;
  } else if (value != "none") {
    const bool is_number = value.is_number_integer() && value.get<Size>() > 0;
    if (value != "full" && !is_number) reject(key, value, "must be " + type_text(member));
    given.units = is_number ? value.get<Size>() : 1;
  }
  member = given;
}
static nlohmann::json as_json(const Recomputation& member) {
  if (member.what != Recomputed::units) return name_of(member.what);
  if (member.units == 0) return "none";
  return member.units == 1 ? nlohmann::json("full") : nlohmann::json(member.units);
}

static std::string type_text(const MeshSizes&) {
  return "a list of integers, \"nodes\" and \"per_node\"";
}
static void assign(std::string_view key, const nlohmann::json& value, MeshSizes& member, HintFor) {
  MeshSizes sizes;
  for (const nlohmann::json& given : value.is_array() ? value : nlohmann::json::array({nullptr})) {
    const auto word = std::ranges::find_if(
        size_words, [&](const SizeWord& known) { return given == known.name; });
    if (word != size_words.end())
      sizes.push_back(word->size);
    else if (given.is_number_integer() && given.get<Size>() > size_per_node)
      sizes.push_back(given.get<Size>());
    else
      reject(key, value, "must be " + type_text(member));
  }
  member = std::move(sizes);
}
void to_json(nlohmann::json& json, const MeshSizes& sizes) {
  json = nlohmann::json::array();
  for (const Size size : sizes) {
    const auto word = std::ranges::find(size_words, size, &SizeWord::size);
    json.push_back(word == size_words.end() ? nlohmann::json(size) : nlohmann::json(word->name));
  }
}

namespace {

/// Other programs count pipelines and the like among the strategies.
std::string hint_for_strategy(std::string_view wrong, std::span<const std::string_view> names) {
  const std::string near = did_you_mean(wrong, names), key = key_of_other_tool(wrong);
  return near.empty() && !key.empty() ? "; did you mean " + key + "?" : near;
}

/// Computing with 16 bits is another key.
std::string hint_for_dtype(std::string_view wrong, std::span<const std::string_view> names) {
  constexpr auto short_types = std::span(names_of<MixedPrecision>).subspan(1);
  for (const std::string_view type : short_types)
    if (wrong == type || name_of_other_tool(wrong, short_types) == type)
      return fmt::format("; did you mean distributed.mixed_precision = \"{}\"?", type);
  return did_you_mean(wrong, names);
}

const Fields<ModelConfig>& model_fields() {
  using C = ModelConfig;
  static const Fields<C> fields{
      {"model.kind", &C::kind, "kind of network", Tier::common},
      {"model.dtype", &C::dtype, "type of parameters, activations and messages", Tier::common,
       hint_for_dtype},
      {"model.matmul_precision", &C::matmul_precision, "precision of float32 matrix products",
       Rule<C>{[](const C& c) { return c.dtype == DType::float32; },
               "needs model.dtype = \"float32\""}},
  };
  return fields;
}

const Fields<Numerics>& numerics_fields() {
  using C = Numerics;
  constexpr Bounds grains = up_to(1 << 16);
  const Rule<C> needs_order{[](const C& c) { return c.reproducible; },
                            "needs numerics.reproducible = true"};
  static const Fields<C> fields{
      {"numerics.reproducible", &C::reproducible,
       "sum in an order that is the same on every mesh, so that all of them compute the same bits",
       fixed},
      {"numerics.grains", &C::grains,
       "parts of a batch that are summed first, a power of two; each of them is a microbatch "
       "of one rank",
       grains, needs_order, fixed},
      {"numerics.model_grains", &C::model_grains,
       "parts of the dimensions that the axes model and context may split, a power of two", grains,
       needs_order, fixed},
  };
  return fields;
}

const Fields<TrainingConfig>& training_fields() {
  using C = TrainingConfig;
  // Targets are floating-point numbers.
  constexpr Bounds exact{
      .least = -0x1p24,
      .most = 0x1p24,
      .allowed = "must be from -2^24 to 2^24, the integers that float32 holds exactly"};
  static const Fields<C> fields{
      {"training.num_epochs", &C::num_epochs, "passes over the data", positive, Tier::common},
      {"training.learning_rate", &C::learning_rate, "base learning rate of the schedule",
       not_negative, Tier::common},
      {"training.batch_size", &C::batch_size, "global batch: samples per step over all ranks",
       positive, Tier::common, fixed},
      {"training.microbatches", &C::microbatches,
       "parts of a batch, computed one after another: gradient accumulation", positive,
       Tier::common,
       Rule<C>{[](const C& c) -> std::string {
                 if (c.microbatches <= c.batch_size) return "";
                 return fmt::format("must be at most training.batch_size = {}", c.batch_size);
               },
               When::always}},
      {"training.loss", &C::loss, "loss over the global batch", Tier::common, fixed},
      {"training.boundary_weight", &C::boundary_weight,
       "weight of the boundary term in the loss poisson", not_negative, fixed,
       Rule<C>{[](const C& c) { return c.loss == LossKind::poisson; },
               "needs training.loss = \"poisson\""}},
      {"training.ignore_index", &C::ignore_index,
       "number of targets that do not count in the loss; cross_entropy", exact, fixed},
      {"training.validate_every", &C::validate_every,
       "epochs between validations; the last epoch is always validated", positive},
      {"training.patience", &C::patience,
       "stop after this many validations in a row without a new smallest loss; 0: never",
       not_negative},
      {"training.check_finite", &C::check_finite, "stop at the first non-finite gradient"},
      {"training.activation_checkpointing", &C::activation_checkpointing,
       "activations that the backward pass recomputes: none; of kinds without products (cheap); of "
       "attention; all but the inputs of each block, of each layer (full), or of segments of so "
       "many layers"},
      {"training.check_replicas_every", &C::check_replicas_every,
       "steps between replica checks; 0: never", not_negative, Tier::internal},
  };
  return fields;
}

const Fields<DistributedConfig>& distributed_fields() {
  using C = DistributedConfig;
  static const Fields<C> fields{
      {"distributed.strategy", &C::strategy, "parallel strategy", Tier::common, hint_for_strategy},
      {"distributed.mesh_shape", &C::mesh_shape,
       "axis sizes, slowest first: numbers, \"nodes\", \"per_node\"; one may be -1 for the "
       "remaining ranks",
       Tier::common},
      {"distributed.mesh_axis_names", &C::mesh_axis_names,
       "axis names, one per entry of mesh_shape", Tier::common},
      {"distributed.mixed_precision", &C::mixed_precision, "type used for compute and activations",
       Tier::common},
      {"distributed.world_size", &C::world_size, "number of ranks", positive},
      {"distributed.threads", &C::threads, "threads per rank", positive},
      {"distributed.num_nodes", &C::num_nodes, "number of nodes of the launch", positive},
      {"distributed.num_processes_per_node", &C::num_processes_per_node,
       "ranks per node of the launch", positive},
      {"distributed.tensor_parallel_size", &C::tensor_parallel_size, "size of the mesh axis model",
       positive},
      {"distributed.pipeline_parallel_size", &C::pipeline_parallel_size,
       "size of the mesh axis pipeline", positive},
      {"distributed.gradient_reduce_type", &C::gradient_reduce_type,
       "gradient of the mean or of the sum of the batch's losses", fixed},
      {"distributed.bucket_bytes", &C::bucket_bytes,
       "largest gradient bucket, in bytes; data, zero1, zero2", positive},
      {"distributed.shard_moments_over", &C::shard_moments_over,
       "mesh axes that shard moments, where parameters are sharded over fsdp only: all that split "
       "the batch, as [\"data\", \"fsdp\"]; hybrid"},
      {"distributed.fsdp_unit", &C::fsdp_unit,
       "what one call gathers: the parameters of a layer or of a block; fsdp, hybrid"},
      {"distributed.muon_layout", &C::muon_layout,
       "where muon orthogonalizes matrices of which ranks hold shares: on all (gather), or each on "
       "one, to which shares of buckets or exchanges move it"},
      {"distributed.overlap", &C::overlap, "start reductions during the backward pass"},
      {"distributed.prefetch", &C::prefetch,
       "gather the next unit while one is in use; fsdp, hybrid"},
      {"distributed.reshard_after_forward", &C::reshard_after_forward,
       "false: keep gathered units until their backward pass; fsdp, hybrid"},
      {"distributed.keep_last_unit", &C::keep_last_unit,
       "keep the last unit gathered from forward to backward; fsdp, hybrid",
       Rule<C>{[](const C& c) { return c.reshard_after_forward; },
               "must be true with distributed.reshard_after_forward = false, which keeps all "
               "units"}},
      {"distributed.mesh_rules", &C::mesh_rules,
       "mesh axes that split the batch and the dimensions of parameters; default: model for "
       "experts, heads, mlp, modes and vocab",
       Rule<C>{[](const C& c) {
                 check_mesh_rules("distributed.mesh_rules", c.mesh_rules);
                 return std::string();
               },
               When::alone}},
      {"distributed.parameter_specs", &C::parameter_specs,
       "PartitionSpec per parameter, overriding the rules",
       Rule<C>{[](const C& c) {
                 check_parameter_specs("distributed.parameter_specs", c.parameter_specs);
                 return std::string();
               },
               When::alone}},
      {"distributed.sequence_parallel", &C::sequence_parallel,
       "reduce-scatter and all-gather instead of all-reduce along model"},
      {"distributed.model_overlap", &C::model_overlap,
       "compute products in pieces of rows while others move along model, in messages round a ring",
       Rule<C>{[](const C& c) { return c.sequence_parallel; },
               "needs distributed.sequence_parallel, without which no rows move"}},
      {"distributed.model_reduce_dtype", &C::model_reduce_dtype,
       "type of the sums of activations along model: that of parameters, or the 16-bit one",
       Rule<C>{[](const C& c) { return c.mixed_precision != MixedPrecision::no; },
               "needs distributed.mixed_precision"}},
      {"distributed.context_attention", &C::context_attention,
       "how attention reads the positions of other ranks of context"},
      {"distributed.zigzag", &C::zigzag,
       "ranks of context have two runs of positions each, which are equal work under a causal "
       "mask"},
      {"distributed.schedule", &C::schedule, "order of passes on pipeline stages"},
      {"distributed.virtual_stages", &C::virtual_stages,
       "chunks of layers on each pipeline stage; interleaved, and 2 with zbv and dualpipev",
       positive},
      {"distributed.schedule_file", &C::schedule_file,
       "CSV of passes, a row per pipeline stage, in place of schedule and virtual_stages",
       Rule<C>{[](const C& c) {
                 return c.schedule == PipelineSchedule::one_f_one_b && c.virtual_stages == 1;
               },
               "needs distributed.schedule and virtual_stages to be absent"}},
      {"distributed.stage_balance", &C::stage_balance,
       "quantity that is balanced over pipeline stages"},
      {"distributed.stage_layout", &C::stage_layout,
       "blocks of each stage, or of each chunk in the order of layers, in place of stage_balance",
       Rule<C>{[](const C& c) { return c.stage_balance == StageBalance::layers; },
               "needs distributed.stage_balance to be absent"}},
  };
  return fields;
}

const Fields<CheckpointConfig>& checkpoint_fields() {
  using C = CheckpointConfig;
  const Rule<C> needs_directory{[](const C& c) { return c.enabled(); },
                                "needs checkpoint.directory"};
  static const Fields<C> fields{
      {"checkpoint.directory", &C::directory, "directory for checkpoints; empty: write none",
       Tier::common},
      {"checkpoint.init_from", &C::init_from,
       "checkpoint, safetensors file or folder of a model whose parameters a new training starts "
       "from"},
      {"checkpoint.every_steps", &C::every_steps, "steps between checkpoints; 0: off", not_negative,
       needs_directory},
      {"checkpoint.every_minutes", &C::every_minutes, "minutes between checkpoints; 0: off",
       not_negative, needs_directory},
      {"checkpoint.at_end", &C::at_end, "write a checkpoint after the last step", needs_directory},
      {"checkpoint.keep", &C::keep, "number of newest checkpoints to keep; 0: all", not_negative,
       needs_directory},
      {"checkpoint.keep_best", &C::keep_best,
       "further checkpoints to keep, those with the smallest loss at the end of an epoch; with "
       "validation samples, they are written after each such validation",
       not_negative, needs_directory,
       Rule<C>{[](const C& c) { return c.keep > 0; },
               "needs checkpoint.keep > 0, because 0 already keeps all"}},
      {"checkpoint.async", &C::async,
       "write checkpoints in the background while training continues", needs_directory},
      {"checkpoint.on_failure", &C::on_failure, "reaction to a checkpoint that cannot be written",
       needs_directory},
  };
  return fields;
}

const Fields<OutputConfig>& output_fields() {
  using C = OutputConfig;
  static const Fields<C> fields{
      {"output.metrics", &C::metrics, "file of metrics, one JSON object per line; empty: none",
       Tier::common},
      {"output.tensorboard", &C::tensorboard,
       "directory for event files of TensorBoard; empty: none"},
      {"output.every_steps", &C::every_steps,
       "steps between records of metrics; 0: one at the end of each epoch", not_negative,
       Rule<C>{[](const C& c) { return c.enabled(); },
               "needs output.metrics or output.tensorboard"}},
      {"output.hashes", &C::hashes,
       "file of hashes of loss, gradients and parameters, one JSON object per line, for tessera "
       "diff; empty: none",
       Tier::internal},
      {"output.hash_every_steps", &C::hash_every_steps, "steps between hashes", positive,
       Tier::internal,
       Rule<C>{[](const C& c) { return !c.hashes.empty(); }, "needs output.hashes"}},
  };
  return fields;
}

/// Appends the fields of a member.
template <class T, class Part, class Base>
void add(Fields<T>& fields, const Fields<Part>& part, Part Base::*member) {
  add_part(
      fields, part, [member](auto& whole) -> auto& { return whole.*member; });
}

Fields<Config> make_settings() {
  Fields<ModelConfig> model = model_fields();
  add(model, mlp_fields(), &ModelConfig::mlp);
  add(model, residual_mlp_fields(), &ModelConfig::residual_mlp);
  add(model, transformer_fields(), &ModelConfig::transformer);
  add(model, vae_fields(), &ModelConfig::vae);
  add(model, pinn_fields(), &ModelConfig::pinn);
  add(model, fno_fields(), &ModelConfig::fno);
  for (Field<ModelConfig>& field : model) field.is_fixed = true;
  Fields<TrainingConfig> training = training_fields();
  add(training, numerics_fields(), &TrainingConfig::numerics);
  add(training, optimizer_fields(), &TrainingConfig::optimizer);
  add(training, schedule_fields(), &TrainingConfig::schedule);
  add(training, clip_fields(), &TrainingConfig::clip);
  add(training, distributed_fields(), &TrainingConfig::distributed);
  Fields<Config> all;
  add(all, model, &Config::model);
  add(all, data_fields(), &Config::data);
  add(all, training, &Config::training);
  add(all, comm_fields(), &Config::comm);
  add(all, checkpoint_fields(), &Config::checkpoint);
  add(all, output_fields(), &Config::output);
  return all;
}

}  // namespace

const Fields<Config>& settings() {
  static const Fields<Config> all = make_settings();
  return all;
}

}  // namespace tessera
