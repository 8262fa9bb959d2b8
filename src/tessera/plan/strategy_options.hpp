// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/plan/pipeline/pipeline_schedule.hpp>

namespace tessera {

/// The rule that distributes layers over the stages of a pipeline.
enum class StageBalance : std::uint8_t {
  layers,  ///< equal numbers of units; the first stages have one more if they do not divide evenly
  flops,   ///< minimises the FLOPs of the busiest stage
  blocks,  ///< equal numbers of blocks of the model (blocks_of()), which no stage cuts
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<StageBalance>{"layers", "flops",
                                                                        "blocks"};

/// The parameters that one call gathers, if the strategy shards them.
enum class FsdpUnit : std::uint8_t {
  layer,  ///< a unit: the parameters of one layer
  block,  ///< the units of one block of the model, block_of()
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<FsdpUnit>{"layer", "block"};

/// The type in which ranks of `model` add activations and their gradients: the state type, rounded
/// once after the sum, or the compute type, in which terms and each addition round, as NCCL does.
enum class ModelReduceType : std::uint8_t { state, compute };
template <>
inline constexpr std::array<std::string_view, 2> names_of<ModelReduceType>{"state", "compute"};

/// The ranks on which muon makes a matrix whole and orthogonalizes it, if a strategy shards
/// moments.
enum class MuonLayout : std::uint8_t {
  gather,    ///< on all ranks, which gather the directions of a bucket
  owner,     ///< on one rank: shares of buckets are cut between parameters, balanced by FLOPs
  exchange,  ///< on one rank, balanced by FLOPs: all-to-alls move directions to it and back
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<MuonLayout>{"gather", "owner",
                                                                      "exchange"};

/// The options of a parallel strategy. The configuration and PlanInput both derive from this
/// struct, so each option has one declaration and one default.
struct StrategyOptions {
  Strategy strategy = Strategy::data;
  /// All batch axes: ranks keep moments of a part of their share only. Empty: as the strategy does.
  std::vector<std::string> shard_moments_over;
  ModelReduceType model_reduce_dtype = ModelReduceType::state;
  Size bucket_bytes = Size{25} << 20;  ///< limit of a bucket; a larger unit is a bucket by itself
  FsdpUnit fsdp_unit = FsdpUnit::layer;
  MuonLayout muon_layout = MuonLayout::gather;
  bool overlap = false;               ///< start reductions during the backward pass
  bool prefetch = true;               ///< gather the next unit while one is in use
  bool reshard_after_forward = true;  ///< false: units stay gathered until their backward pass
  bool keep_last_unit = true;         ///< the last unit stays gathered until its backward pass
  /// Between a row-parallel and a column-parallel layer, each rank of `model` computes a part of
  /// the rows only (Korthikanti et al. 2022).
  bool sequence_parallel = false;
  /// Products are computed in pieces of rows, while others move along `model` (Wang et al. 2023).
  bool model_overlap = false;
  ContextAttention context_attention = ContextAttention::gather;
  bool zigzag = true;  ///< ranks of `context` have equal work under a causal mask (Split)
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Size virtual_stages = 1;      ///< chunks of layers on each pipeline stage
  std::string schedule_file{};  ///< CSV with the passes (read_passes()), in place of both
  StageBalance stage_balance = StageBalance::layers;
  /// Blocks of each chunk, in the order of layers, in place of a balance; empty: none are given.
  std::vector<Size> stage_layout;
};

}  // namespace tessera
