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
#include <tessera/nn/models/models.hpp>
#include <tessera/nn/products/matmul_precision.hpp>
#include <tessera/optim/optimizer_config.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

/// The type of activations and of the operands of products. Parameters, their gradients, moments
/// and all sums stay float32.
enum class MixedPrecision : std::uint8_t { no, fp16, bf16 };
template <>
inline constexpr std::array<std::string_view, 3> names_of<MixedPrecision>{"no", "fp16", "bf16"};

/// Sizes of mesh axes. An entry may be size_rest, size_nodes or size_per_node.
struct MeshSizes : std::vector<Size> {
  using std::vector<Size>::vector;
  MeshSizes(std::vector<Size> sizes) : std::vector<Size>(std::move(sizes)) {}
};
/// [2, "per_node"]
void to_json(nlohmann::json& json, const MeshSizes& sizes);

/// The gradient of a step. It does not depend on the mesh.
enum class GradientReduceType : std::uint8_t {
  mean,  ///< the gradient of the mean loss over the global batch
  sum,   ///< the gradient of the sum of the batch's losses
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<GradientReduceType>{"mean", "sum"};

/// How ranks are arranged, and the options of the strategy. Sizes that are left out follow from the
/// launch.
struct DistributedConfig : StrategyOptions {
  std::optional<Size> world_size{};
  std::optional<Size> threads{};  ///< threads per rank; the launch must provide them
  std::optional<Size> num_nodes{};
  std::optional<Size> num_processes_per_node{};
  std::optional<Size> tensor_parallel_size{};    ///< size of the axis "model"
  std::optional<Size> pipeline_parallel_size{};  ///< size of the axis "pipeline"
  MeshSizes mesh_shape{};
  std::vector<std::string> mesh_axis_names{};  ///< one per entry of mesh_shape, slowest first
  GradientReduceType gradient_reduce_type = GradientReduceType::mean;
  MixedPrecision mixed_precision = MixedPrecision::no;
  /// Logical name of a dimension -> mesh axes. Replaces the default rule of that name.
  std::map<std::string, std::vector<std::string>> mesh_rules{};
  /// "layer1/kernel" -> "P(None, 'model')". Overrides the rules for this parameter.
  std::map<std::string, std::string> parameter_specs{};
};

/// How a model is trained. Options of the step are in the base.
struct TrainingConfig : StepConfig {
  Size num_epochs = 20;
  double learning_rate = 1e-3;
  double boundary_weight = 1;  ///< weight of the boundary term of the loss poisson
  /// Targets with this number do not count in the loss, which is the mean over the others;
  /// cross_entropy. Without any target that counts, loss and gradient are 0.
  std::optional<Size> ignore_index{};
  OptimizerConfig optimizer{};
  ScheduleConfig schedule{};
  ClipConfig clip{};
  Size validate_every = 1;  ///< epochs between validations; the last epoch is always validated
  Size patience = 0;  ///< validations in a row without a new smallest loss that end it; 0: off
  DistributedConfig distributed{};
};

enum class ModelKind : std::uint8_t { mlp, residual_mlp, transformer, vae, pinn, fno };
template <>
inline constexpr std::array<std::string_view, 6> names_of<ModelKind>{
    "mlp", "residual_mlp", "transformer", "vae", "pinn", "fno"};

struct ModelConfig {
  ModelKind kind = ModelKind::mlp;
  MlpConfig mlp{};  ///< every kind uses its activations, bias, initializer and seed
  ResidualMlpConfig residual_mlp{};
  TransformerConfig transformer{};
  VaeConfig vae{};
  PinnConfig pinn{};
  FnoConfig fno{};
  DType dtype = DType::float32;
  MatmulPrecision matmul_precision = MatmulPrecision::strict;
};

/// The reaction to a checkpoint that could not be written.
enum class FailedSave : std::uint8_t { stop, go_on };
template <>
inline constexpr std::array<std::string_view, 2> names_of<FailedSave>{"stop", "continue"};

/// The directory of checkpoints, and when they are written.
struct CheckpointConfig {
  std::string directory{};   ///< created if it does not exist; empty: no checkpoints
  std::string init_from{};   ///< parameters to start from: a checkpoint or safetensors; empty: draw
  Size every_steps = 0;      ///< steps between checkpoints; 0: off
  double every_minutes = 0;  ///< minutes between checkpoints; 0: off
  bool at_end = true;        ///< write one after the last step
  Size keep = 2;             ///< newest checkpoints that stay; 0: all
  Size keep_best = 0;        ///< further ones that stay, with the smallest loss after an epoch
  bool async = false;        ///< a thread writes a copy of the state while training continues
  FailedSave on_failure = FailedSave::stop;

  bool enabled() const { return !directory.empty(); }
};

/// Files of metrics, written while a training runs.
struct OutputConfig {
  std::string metrics{};      ///< file of JSON lines; empty: none
  std::string tensorboard{};  ///< directory for TensorBoard's event files; empty: none
  Size every_steps = 0;       ///< steps between records; 0: one at the end of each epoch
  std::string hashes{};       ///< file of hashes, JSON lines; empty: none
  Size hash_every_steps = 1;  ///< steps between hashes

  bool enabled() const { return !metrics.empty() || !tensorboard.empty(); }
};

/// Everything that a run depends on.
struct Config {
  ModelConfig model{};
  DataConfig data{};
  TrainingConfig training{};
  CommOptions comm{};  ///< [comm], and distributed.backend
  CheckpointConfig checkpoint{};
  OutputConfig output{};
};

/// Returns the type that layers compute with.
DType compute_type(const Config& config);

/// Returns the implementation of products whose operands have fewer bits than their sums; none for
/// others. In a fixed order of sums 16-bit products are emulated, because the bits of native ones
/// depend on the strides of operands, which depend on the mesh.
std::optional<HalfProducts> half_products(const Config& config);

}  // namespace tessera
