// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>
#include <tessera/comm/comm_options.hpp>
#include <tessera/data/data_config.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/nn/loss_kind.hpp>
#include <tessera/nn/models/models.hpp>
#include <tessera/nn/products/matmul_precision.hpp>
#include <tessera/optim/optimizer_config.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// The type of activations and of the operands of products. Parameters and moments stay float32, as
/// do gradients of parameters and everything that is summed.
enum class MixedPrecision : std::uint8_t { no, fp16, bf16 };
template <>
inline constexpr std::array<std::string_view, 3> names_of<MixedPrecision>{"no", "fp16", "bf16"};

/// Sizes of mesh axes: numbers, or one of size_rest, size_nodes and size_per_node.
struct MeshSizes : std::vector<Size> {
  using std::vector<Size>::vector;
  MeshSizes(std::vector<Size> sizes) : std::vector<Size>(std::move(sizes)) {}
};
/// [2, "per_node"]
void to_json(nlohmann::json& json, const MeshSizes& sizes);

/// How the ranks are arranged and what travels between them. Names are checked against the tables
/// of known names when the configuration is validated; sizes left out follow from the launch.
struct DistributedConfig {
  bool enabled = true;  ///< false: the run must have one rank
  std::optional<Size> world_size{};
  std::optional<Size> threads{};  ///< of a rank, which the launch must give it
  std::string backend = "auto";   ///< "auto", "mpi" or "nccl": see comm/backend.hpp
  std::optional<Size> num_nodes{};
  std::optional<Size> num_processes_per_node{};
  std::optional<Size> tensor_parallel_size{};    ///< of the axis "model"; unset: as in the mesh
  std::optional<Size> pipeline_parallel_size{};  ///< of the axis "pipeline"; unset: as in the mesh
  MeshSizes mesh_shape{};
  std::vector<std::string> mesh_axis_names{};  ///< one per entry of mesh_shape, slowest first
  std::string strategy = "data";
  /// "mean": gradient of the mean loss over the global batch. "sum": gradient of the sum of the
  /// batch's losses, not divided by anything. Neither depends on the mesh.
  std::string gradient_reduce_type = "mean";
  MixedPrecision mixed_precision = MixedPrecision::no;
  Size bucket_bytes = 25 * 1024 * 1024;  ///< most bytes of gradients reduced in one call
  bool overlap = false;                  ///< start a bucket as soon as its gradients are ready
  /// Logical name of a dimension -> mesh axes; replaces the rule that the name has by default.
  std::map<std::string, std::vector<std::string>> mesh_rules{};
  /// "layer1/kernel" -> "P(None, 'model')"; of these parameters the rules say nothing.
  std::map<std::string, std::string> parameter_specs{};
  bool prefetch = true;               ///< gather the next unit while this one is used
  bool reshard_after_forward = true;  ///< false: gathered units stay until their backward pass
  bool keep_last_unit = true;  ///< the last unit stays gathered between its forward and backward
  bool sequence_parallel = false;  ///< reduce-scatter and all-gather in place of an all-reduce
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Size virtual_stages = 1;  ///< chunks of layers on each pipeline stage
  StageBalance stage_balance = StageBalance::layers;
};

struct TrainingConfig {
  Size num_epochs = 20;
  double learning_rate = 1e-3;
  Size batch_size = 32;   ///< global: rows of all ranks together
  Size microbatches = 1;  ///< parts of a batch whose gradients are accumulated
  LossKind loss = LossKind::mse;
  double boundary_weight = 1;  ///< of the boundary's term in the loss poisson
  OptimizerConfig optimizer{};
  ScheduleConfig schedule{};
  ClipConfig clip{};
  Size validate_every = 1;        ///< epochs between validations; the last one is validated anyway
  bool check_finite = false;      ///< stop at the first gradient that is not finite
  Size check_replicas_every = 0;  ///< steps between checks that replicas are equal; 0: never
  Recomputation activation_checkpointing{};
  DistributedConfig distributed{};
};

enum class ModelKind : std::uint8_t { mlp, residual_mlp, transformer, vae, pinn, fno };
template <>
inline constexpr std::array<std::string_view, 6> names_of<ModelKind>{
    "mlp", "residual_mlp", "transformer", "vae", "pinn", "fno"};

struct ModelConfig {
  ModelKind kind = ModelKind::mlp;
  MlpConfig mlp{};  ///< activations, bias, initializer and seed are those of every kind
  ResidualMlpConfig residual_mlp{};
  TransformerConfig transformer{};
  VaeConfig vae{};
  PinnConfig pinn{};
  FnoConfig fno{};
  DType dtype = DType::float32;
  MatmulPrecision matmul_precision = MatmulPrecision::strict;
};

/// What follows a checkpoint that could not be written.
enum class FailedSave : std::uint8_t { stop, go_on };
template <>
inline constexpr std::array<std::string_view, 2> names_of<FailedSave>{"stop", "continue"};

/// Where a training keeps checkpoints, and when and how it writes one.
struct CheckpointConfig {
  std::string directory{};   ///< made if it is not there; empty: no checkpoints
  Size every_steps = 0;      ///< 0: at no step for its number
  double every_minutes = 0;  ///< 0: at no time
  bool at_end = true;        ///< after the last step
  Size keep = 2;             ///< the newest ones; 0: all
  Size keep_best = 0;        ///< and so many with the smallest loss at the end of an epoch
  bool async = false;        ///< a thread writes a copy of the state while training goes on
  FailedSave on_failure = FailedSave::stop;
  bool overwrite = false;  ///< replaces the checkpoints of another training

  bool enabled() const { return !directory.empty(); }
};

/// Everything that a run depends on.
struct Config {
  ModelConfig model{};
  DataConfig data{};
  TrainingConfig training{};
  CommOptions comm{};  ///< keys: timeout_seconds, check_collectives
  CheckpointConfig checkpoint{};
};

/// The type that layers compute with.
DType compute_type(const Config& config);

/// `comm` with the backend of `training.distributed`, unless that is "auto" or not known, which
/// validate() rejects.
CommOptions comm_options(const Config& config);

}  // namespace tessera
