// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/setting_types.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/sharding_rules.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {
namespace {

/// Checks that an enumerator has a name. Every other value passes; config_rules.cpp checks it if
/// another setting matters.
constexpr auto only_type = [](const std::string& key, const auto& value) {
  auto copy = value;
  if constexpr (std::is_enum_v<decltype(copy)>)
    setting_types::assign(key, setting_types::as_json(value), copy);
};

constexpr auto positive = [](const std::string& key, const auto& value) {
  constexpr bool real = std::is_floating_point_v<std::decay_t<decltype(value)>>;
  if (!(value > 0) || !std::isfinite(static_cast<double>(value)))
    reject(key, value, real ? "must be positive and finite" : "must be positive");
};

constexpr auto positive_if_set = [](const std::string& key, const auto& value) {
  if (value) positive(key, *value);
};

constexpr auto not_negative = [](const std::string& key, const auto& value) {
  constexpr bool real = std::is_floating_point_v<std::decay_t<decltype(value)>>;
  if (!(value >= 0) || !std::isfinite(static_cast<double>(value)))
    reject(key, value, real ? "must be finite and not negative" : "must not be negative");
};

/// Targets are floating-point numbers.
constexpr auto exact_in_float = [](const std::string& key, const std::optional<Size>& value) {
  constexpr Size most = Size{1} << 24;
  if (value && (*value < -most || *value > most))
    reject(key, *value, "must be from -2^24 to 2^24, the integers that float32 holds exactly");
};

constexpr auto printable_seed = [](const std::string& key, std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    reject(key, value, "must be at most 2^63 - 1, TOML's largest integer");
};

/// Makes the row of a key. `member(config)` returns the member that the key sets; `check(key,
/// value)` rejects values.
template <class Member, class Check = decltype(only_type)>
Setting setting(std::string key, Member member, std::string doc, Check check = {}) {
  using T = std::decay_t<decltype(member(std::declval<Config&>()))>;
  if constexpr (std::is_enum_v<T>) doc += ": " + join(setting_types::values_of<T>());
  Setting made{
      key, std::move(doc),
      [=](Config& c, const nlohmann::json& v) { setting_types::assign(key, v, member(c)); },
      [=](const Config& c) { return setting_types::as_json(member(c)); },
      [=](const Config& c) { check(key, member(c)); }};
  made.is_text = setting_types::is_text<T>;
  return made;
}

/// The struct that a section of the file sets.
auto& model(auto& c) { return c.model; }
auto& network(auto& c) { return c.model.mlp; }
auto& data(auto& c) { return c.data; }
auto& training(auto& c) { return c.training; }
auto& numerics(auto& c) { return c.training.numerics; }
auto& optimizer(auto& c) { return c.training.optimizer; }
auto& schedule(auto& c) { return c.training.schedule; }
auto& clip(auto& c) { return c.training.clip; }
auto& distributed(auto& c) { return c.training.distributed; }
auto& comm(auto& c) { return c.comm; }
auto& checkpoint(auto& c) { return c.checkpoint; }
auto& output(auto& c) { return c.output; }

/// The row of the key "section.path", which sets the member `path` of `of(config)`.
#define TESSERA_KEY(section, of, path, ...) \
  setting(                                  \
      section "." #path, [](auto& c) -> auto& { return of(c).path; }, __VA_ARGS__)
#define TESSERA_SETTING(section, path, ...) TESSERA_KEY(#section, section, path, __VA_ARGS__)

/// A number, or "all" of a file.
Setting samples_setting() {
  Setting made = TESSERA_SETTING(
      data, samples, "samples in the data set; all: those of the files, less the validation ones",
      [](const std::string& key, Size value) {
        if (value != every_sample) positive(key, value);
      });
  const auto set_number = made.set;
  made.set = [set_number](Config& config, const nlohmann::json& value) {
    config.data.samples = every_sample;
    if (value == "all") return;
    if (value.is_string()) reject("data.samples", value, "must be an integer or \"all\"");
    set_number(config, value);
    if (config.data.samples == every_sample) positive("data.samples", every_sample);
  };
  const auto get_number = made.get;
  made.get = [get_number](const Config& config) {
    return config.data.samples == every_sample ? nlohmann::json("all") : get_number(config);
  };
  return made;
}

std::vector<Setting> make_settings() {
  return {
      TESSERA_SETTING(model, kind, "kind of network"),
      TESSERA_KEY("model", network, widths, "layer widths of an mlp: input, hidden ..., output"),
      TESSERA_SETTING(model, residual_mlp.input_width, "columns of x", positive),
      TESSERA_SETTING(model, residual_mlp.width, "width of the residual stream", positive),
      TESSERA_SETTING(model, residual_mlp.inner_width, "width between fc1 and fc2 of a block",
                      positive),
      TESSERA_SETTING(model, residual_mlp.blocks,
                      "number of blocks x + fc2(activation(fc1(ln(x))))", positive),
      TESSERA_SETTING(model, residual_mlp.output_width, "columns of y", positive),
      TESSERA_SETTING(model, transformer.vocabulary,
                      "number of classes of a sequence element (tokens)", positive),
      TESSERA_SETTING(model, transformer.context, "positions in a sequence", positive),
      TESSERA_SETTING(model, transformer.width, "width of the residual stream", positive),
      TESSERA_SETTING(model, transformer.heads, "number of heads per attention layer", positive),
      TESSERA_SETTING(model, transformer.blocks, "number of blocks", positive),
      TESSERA_SETTING(model, transformer.inner_width, "width between fc1 and fc2 of a block",
                      positive),
      TESSERA_SETTING(model, transformer.experts,
                      "experts of a block, each with an fc1 and an fc2; 0: one dense pair",
                      not_negative),
      TESSERA_SETTING(model, transformer.top_k, "experts that a position chooses, at most 8"),
      TESSERA_SETTING(model, transformer.capacity_factor,
                      "positions of a sequence that an expert takes, over an even load; later ones "
                      "are dropped; 0: no limit",
                      not_negative),
      TESSERA_SETTING(model, transformer.balance_loss,
                      "weight in the loss of the balance of the experts' load", not_negative),
      TESSERA_SETTING(model, transformer.router_z_loss,
                      "weight in the loss of the squared log-sum-exp of the router's logits",
                      not_negative),
      TESSERA_SETTING(model, vae.input_width, "columns of x and of the prediction", positive),
      TESSERA_SETTING(model, vae.hidden,
                      "widths of the encoder's hidden layers; the decoder has them in reverse"),
      TESSERA_SETTING(model, vae.latent, "number of latent variables", positive),
      TESSERA_SETTING(model, vae.beta, "weight of the KL divergence in the loss", not_negative),
      TESSERA_SETTING(model, pinn.width, "width of the hidden layers", positive),
      TESSERA_SETTING(model, pinn.layers, "number of hidden layers", positive),
      TESSERA_SETTING(model, fno.grid, "number of grid points along each dimension", positive),
      TESSERA_SETTING(model, fno.modes,
                      "modes kept along the second dimension; twice as many along the first",
                      positive),
      TESSERA_SETTING(model, fno.width, "channels of the field", positive),
      TESSERA_SETTING(model, fno.layers, "number of Fourier layers", positive),
      TESSERA_SETTING(model, fno.projection, "width between the two layers of the projection",
                      positive),
      TESSERA_KEY(
          "model", network, activation,
          "activation after hidden layers (mlp, pinn, vae), fc1 (residual_mlp, transformer), all "
          "Fourier layers but the last (fno)"),
      TESSERA_KEY("model", network, output_activation, "activation after the last layer"),
      TESSERA_KEY("model", network, bias, "add a bias to the outputs of linear layers"),
      TESSERA_KEY("model", network, initializer,
                  "distribution of the initial kernels (biases start at zero)"),
      TESSERA_KEY("model", network, seed, "seed of the initial parameters", printable_seed),
      TESSERA_SETTING(model, dtype, "type of parameters, activations and messages"),
      TESSERA_SETTING(model, matmul_precision, "precision of float32 matrix products"),

      TESSERA_SETTING(data, kind, "generator or file format of the samples"),
      samples_setting(),
      TESSERA_SETTING(data, seed, "seed of the data set", printable_seed),
      TESSERA_SETTING(data, file, "file to read samples from; bytes, idx, hdf5"),
      TESSERA_SETTING(data, x, "array of the inputs: a file for npy, a name in data.file for hdf5"),
      TESSERA_SETTING(data, y, "array of the targets, likewise"),
      TESSERA_SETTING(data, allow_nonfinite,
                      "train on NaN and infinity in these arrays, instead of rejecting them"),
      TESSERA_SETTING(data, shuffle, "visit the samples in a new random order in each epoch"),
      TESSERA_SETTING(data, validation_samples,
                      "unseen samples whose loss is computed between epochs; 0: none",
                      not_negative),

      TESSERA_SETTING(training, num_epochs, "passes over the data", positive),
      TESSERA_SETTING(training, learning_rate, "base learning rate of the schedule", not_negative),
      TESSERA_SETTING(training, batch_size, "global batch: samples per step over all ranks",
                      positive),
      TESSERA_SETTING(training, microbatches,
                      "parts of a batch, computed one after another: gradient accumulation",
                      positive),
      TESSERA_SETTING(training, loss, "loss over the global batch"),
      TESSERA_SETTING(training, boundary_weight, "weight of the boundary term in the loss poisson",
                      not_negative),
      TESSERA_SETTING(training, ignore_index,
                      "number of targets that do not count in the loss; cross_entropy",
                      exact_in_float),
      TESSERA_SETTING(training, validate_every,
                      "epochs between validations; the last epoch is always validated", positive),
      TESSERA_SETTING(training, patience,
                      "stop after this many validations in a row without a new smallest loss; 0: "
                      "never",
                      not_negative),
      TESSERA_SETTING(training, check_finite, "stop at the first non-finite gradient"),
      TESSERA_SETTING(
          training, activation_checkpointing,
          "layers whose activations are recomputed in the backward pass: none, full (all), or "
          "the number of layers per segment, of which only the inputs are kept"),
      TESSERA_SETTING(training, check_replicas_every, "steps between replica checks; 0: never",
                      not_negative),

      TESSERA_SETTING(numerics, reproducible,
                      "sum in an order that is the same on every mesh, so that all of them compute "
                      "the same bits"),
      TESSERA_SETTING(numerics, grains,
                      "parts of a batch that are summed first, a power of two; every rank and "
                      "microbatch gets whole grains",
                      positive),
      TESSERA_SETTING(numerics, model_grains,
                      "parts of the dimensions that the axis model may split, a power of two",
                      positive),

      TESSERA_SETTING(optimizer, kind, "update rule"),
      TESSERA_SETTING(optimizer, momentum, "momentum of sgd, below 1"),
      TESSERA_SETTING(optimizer, nesterov, "Nesterov momentum for sgd"),
      TESSERA_SETTING(optimizer, beta1, "first-moment decay of adam and adamw, below 1"),
      TESSERA_SETTING(optimizer, beta2,
                      "second-moment decay of adam and adamw, below 1; in float32, up to 0.999, "
                      "1 - beta2^t is rounded as optax rounds it"),
      TESSERA_SETTING(optimizer, epsilon, "denominator offset of adam, adamw and rmsprop"),
      TESSERA_SETTING(optimizer, weight_decay, "decoupled weight decay of adamw"),
      TESSERA_SETTING(optimizer, weight_decay_on,
                      "parameters that decay; kernels: no biases, norms and embeddings"),
      TESSERA_SETTING(optimizer, decay, "running-average decay of rmsprop, below 1"),

      TESSERA_SETTING(schedule, kind, "learning-rate schedule"),
      TESSERA_SETTING(schedule, steps,
                      "length of the schedule in steps, with the warm-up (exponential, step: steps "
                      "per factor of schedule.rate); all but constant"),
      TESSERA_SETTING(schedule, rate, "decay factor per schedule.steps; exponential and step"),
      TESSERA_SETTING(schedule, end_factor,
                      "final rate divided by base rate; cosine, linear, warmup_cosine, wsd"),
      TESSERA_SETTING(schedule, decay_steps,
                      "last steps of the schedule, in which the rate falls linearly; wsd"),
      TESSERA_SETTING(schedule, warmup_steps,
                      "first steps, in which the rate rises linearly to the base rate; 0: none"),
      TESSERA_SETTING(schedule, start_factor, "initial rate divided by base rate, with a warm-up"),

      TESSERA_SETTING(clip, global_norm, "clip the gradient to this global norm"),
      TESSERA_SETTING(clip, value, "clip gradient elements to this magnitude"),

      TESSERA_SETTING(distributed, world_size, "number of ranks", positive_if_set),
      TESSERA_SETTING(distributed, threads, "threads per rank", positive_if_set),
      TESSERA_KEY("distributed", comm, backend, "library that moves tensors between ranks"),
      TESSERA_SETTING(distributed, num_nodes, "number of nodes of the launch", positive_if_set),
      TESSERA_SETTING(distributed, num_processes_per_node, "ranks per node of the launch",
                      positive_if_set),
      TESSERA_SETTING(distributed, tensor_parallel_size, "size of the mesh axis model",
                      positive_if_set),
      TESSERA_SETTING(distributed, pipeline_parallel_size, "size of the mesh axis pipeline",
                      positive_if_set),
      TESSERA_SETTING(
          distributed, mesh_shape,
          "axis sizes, slowest first: numbers, \"nodes\", \"per_node\"; one may be -1 for "
          "the remaining ranks"),
      TESSERA_SETTING(distributed, mesh_axis_names, "axis names, one per entry of mesh_shape"),
      TESSERA_SETTING(distributed, strategy, "parallel strategy"),
      TESSERA_SETTING(distributed, gradient_reduce_type,
                      "gradient of the mean or of the sum of the batch's losses"),
      TESSERA_SETTING(distributed, mixed_precision, "type used for compute and activations"),
      TESSERA_SETTING(distributed, bucket_bytes,
                      "largest gradient bucket, in bytes; data, zero1, zero2", positive),
      TESSERA_SETTING(distributed, overlap, "start reductions during the backward pass"),
      TESSERA_SETTING(distributed, prefetch,
                      "gather the next unit while one is in use; fsdp, hybrid"),
      TESSERA_SETTING(distributed, reshard_after_forward,
                      "false: keep gathered units until their backward pass; fsdp, hybrid"),
      TESSERA_SETTING(distributed, keep_last_unit,
                      "keep the last unit gathered from forward to backward; fsdp, hybrid"),
      TESSERA_SETTING(
          distributed, mesh_rules,
          "mesh axes that split the batch and the dimensions of parameters; default: model for "
          "experts, heads, mlp, modes and vocab",
          check_mesh_rules),
      TESSERA_SETTING(distributed, parameter_specs,
                      "PartitionSpec per parameter, overriding the rules", check_parameter_specs),
      TESSERA_SETTING(distributed, sequence_parallel,
                      "reduce-scatter and all-gather instead of all-reduce along model"),
      TESSERA_SETTING(distributed, context_attention,
                      "how attention reads the positions of other ranks of context"),
      TESSERA_SETTING(distributed, zigzag,
                      "ranks of context have two runs of positions each, which are equal work "
                      "under a causal mask"),
      TESSERA_SETTING(distributed, schedule, "order of passes on pipeline stages"),
      TESSERA_SETTING(distributed, virtual_stages,
                      "chunks of layers on each pipeline stage; interleaved", positive),
      TESSERA_SETTING(distributed, stage_balance, "quantity that is balanced over pipeline stages"),

      TESSERA_SETTING(comm, timeout_seconds,
                      "abort the job when a collective takes longer; 0: never"),
      TESSERA_SETTING(comm, check_collectives,
                      "check that all ranks make the same collective call"),

      TESSERA_SETTING(checkpoint, directory, "directory for checkpoints; empty: write none"),
      TESSERA_SETTING(checkpoint, init_from,
                      "checkpoint or safetensors file whose parameters a new training starts from"),
      TESSERA_SETTING(checkpoint, every_steps, "steps between checkpoints; 0: off", not_negative),
      TESSERA_SETTING(checkpoint, every_minutes, "minutes between checkpoints; 0: off",
                      not_negative),
      TESSERA_SETTING(checkpoint, at_end, "write a checkpoint after the last step"),
      TESSERA_SETTING(checkpoint, keep, "number of newest checkpoints to keep; 0: all",
                      not_negative),
      TESSERA_SETTING(
          checkpoint, keep_best,
          "further checkpoints to keep, those with the smallest loss at the end of an epoch; with "
          "validation samples, they are written after each such validation",
          not_negative),
      TESSERA_SETTING(checkpoint, async,
                      "write checkpoints in the background while training continues"),
      TESSERA_SETTING(checkpoint, on_failure, "reaction to a checkpoint that cannot be written"),
      TESSERA_SETTING(checkpoint, overwrite,
                      "replace the checkpoints of another training in the directory"),

      TESSERA_SETTING(output, metrics, "file of metrics, one JSON object per line; empty: none"),
      TESSERA_SETTING(output, tensorboard, "directory for event files of TensorBoard; empty: none"),
      TESSERA_SETTING(output, every_steps,
                      "steps between records of metrics; 0: one at the end of each epoch",
                      not_negative),
      TESSERA_SETTING(output, hashes,
                      "file of hashes of loss, gradients and parameters, one JSON object per line, "
                      "for tessera diff; empty: none"),
      TESSERA_SETTING(output, hash_every_steps, "steps between hashes", positive),
  };
}
#undef TESSERA_SETTING
#undef TESSERA_KEY

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = make_settings();
  return all;
}

}  // namespace tessera
