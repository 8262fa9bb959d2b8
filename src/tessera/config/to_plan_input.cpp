// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <tessera/base/fields.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/nn/models/model_fields.hpp>

namespace tessera {

PlanInput plan_input(const Config& config, const MeshShape& mesh, const DeviceTraits& traits) {
  const TrainingConfig& training = config.training;
  const DistributedConfig& distributed = training.distributed;
  PlanInput input;
  static_cast<StrategyOptions&>(input) = distributed;
  static_cast<StepConfig&>(input) = training;
  input.model = make_model(config);
  input.mesh = mesh;
  input.threads = distributed.threads.value_or(0);
  input.state_type = config.model.dtype;
  input.compute_type = compute_type(config);
  input.traits = traits;
  if (distributed.threads) input.traits.threads = *distributed.threads;
  input.precision = config.model.matmul_precision;
  input.samples = config.data.samples;
  input.validation_samples = config.data.validation_samples;
  input.data_scratch_bytes = row_of(config.data.kind).scratch_bytes(input.model);
  input.shuffles = config.data.shuffle;
  input.moments = moments_per_parameter(training.optimizer);
  input.orthogonalizes = training.optimizer.kind == OptimizerKind::muon;
  input.has_bf16_moments = training.optimizer.moments_type == MomentsType::bf16;
  if (const std::string& file = distributed.schedule_file; !file.empty())
    input.pass_table = read_passes(read_text(file), file);
  for (const auto& [name, axes] : distributed.mesh_rules) input.rules[name] = axes;
  for (const auto& [path, spec] : distributed.parameter_specs)
    input.parameter_specs[path] = PartitionSpec::parse(spec);
  input.clips_by_value = training.clip.value.has_value();
  input.clips_by_norm = training.clip.global_norm.has_value();
  input.writes_checkpoints = config.checkpoint.enabled();
  input.hashes_steps = !config.output.hashes.empty();
  return input;
}

namespace {

/// A kind of model: makes its layers, and tells if its own keys have their defaults.
struct ModelKindRow {
  ModelSpec (*make)(const ModelConfig& config);
  bool (*is_untouched)(const ModelConfig& config);
  const char* size_key;
};

/// In the order of the enumerators.
constexpr std::array<ModelKindRow, names_of<ModelKind>.size()> rows{{
    {[](const ModelConfig& c) { return mlp(c.mlp); },
     [](const ModelConfig& c) { return c.mlp.widths.empty(); }, "model.widths"},
    {[](const ModelConfig& c) { return residual_mlp(c.residual_mlp, c.mlp); },
     [](const ModelConfig& c) { return is_default(residual_mlp_fields(), c.residual_mlp); },
     "model.residual_mlp.width"},
    {[](const ModelConfig& c) { return transformer(c.transformer, c.mlp); },
     [](const ModelConfig& c) { return is_default(transformer_fields(), c.transformer); },
     "model.transformer.width"},
    {[](const ModelConfig& c) { return vae(c.vae, c.mlp); },
     [](const ModelConfig& c) { return is_default(vae_fields(), c.vae); }, "model.vae.hidden"},
    {[](const ModelConfig& c) { return pinn(c.pinn, c.mlp); },
     [](const ModelConfig& c) { return is_default(pinn_fields(), c.pinn); }, "model.pinn.width"},
    {[](const ModelConfig& c) { return fno(c.fno, c.mlp); },
     [](const ModelConfig& c) { return is_default(fno_fields(), c.fno); }, "model.fno.width"},
}};

}  // namespace

ModelSpec make_model(const ModelConfig& config) {
  const auto kind = static_cast<std::size_t>(config.kind);
  for (std::size_t other = 0; other < rows.size(); ++other)
    if (other != kind && !rows[other].is_untouched(config))
      reject("model.kind", name_of(config.kind), "must be \"{}\" if keys such as {} are given",
             names_of<ModelKind>[other], rows[other].size_key);
  return rows[kind].make(config);
}

ModelSpec make_model(const Config& config) {
  ModelSpec model = make_model(config.model);
  model.ignore_index = config.training.ignore_index;
  return model;
}

const char* size_key(ModelKind kind) { return rows[static_cast<std::size_t>(kind)].size_key; }

}  // namespace tessera
