// SPDX-License-Identifier: Apache-2.0
// The order of passes on the stages of a pipeline: data, made and checked before a step runs.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

enum class PipelineSchedule : std::uint8_t {
  gpipe,        ///< all forward passes, then all backward passes (Huang et al. 2019)
  one_f_one_b,  ///< each backward pass as soon as possible (PipeDream-flush, Narayanan et al. 2021)
  interleaved,  ///< 1F1B on several chunks of layers a stage (Narayanan et al. 2021)
  zero_bubble,  ///< 1F1B with delayed weight gradients (ZB-H1, Qi et al. 2024)
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<PipelineSchedule>{
    "gpipe", "1f1b", "interleaved", "zero_bubble"};

/// The kind of a pass of one microbatch through one chunk, a run of layers on one stage.
enum class PassKind : std::uint8_t {
  forward,
  backward,          ///< gradients of inputs and of parameters
  input_gradients,   ///< the half that the previous stage waits for
  weight_gradients,  ///< the other half, which no stage waits for
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<PassKind>{
    "forward", "backward", "input_gradients", "weight_gradients"};

/// The numbers that determine the passes of a pipeline.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Size stages = 1;
  Size microbatches = 1;
  /// Chunks per stage. Chunk c of stage k is number c p + k in the order of layers, with p stages.
  Size virtual_stages = 1;
};

/// A pass of a stage.
struct StagePass {
  PassKind kind = PassKind::forward;
  Size microbatch = 0;
  Size chunk = 0;  ///< number of the chunk on this stage, in the order of layers
  friend auto operator<=>(const StagePass&, const StagePass&) = default;
  // nvcc declares the operator that <=> implies and does not define it.
  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// The positions of a pass in StagePlan::actions.
struct PassSpan {
  StagePass pass{};
  Range actions{};
};
using PassLists = std::vector<std::vector<StagePass>>;  ///< by stage

/// Returns "F3" for the forward pass of microbatch 3, or "F3b" with several chunks. "B" is a
/// backward pass or its input_gradients, "W" its weight_gradients.
std::string short_name(const StagePass& pass, const PipelineShape& shape);
/// Returns "forward of microbatch 3", or "forward of microbatch 3 in chunk 1" with several chunks.
std::string to_string(const StagePass& pass, const PipelineShape& shape);

/// Returns the kinds of passes of a microbatch in a chunk, in order: forward and backward, or
/// forward, input_gradients and weight_gradients.
std::span<const PassKind> kinds_of(PipelineSchedule schedule);

/// Throws ConfigError if the schedule does not allow several chunks.
void check_shape(const PipelineShape& shape);

/// Returns the number of microbatches after which the passes of every stage repeat in the steady
/// state; 0 if they do not: with gpipe, and if groups of interleaved microbatches differ in size.
Size period_of(const PipelineShape& shape);

/// Returns the passes of every stage in their order. Throws ConfigError as check_shape() does.
PassLists order_passes(const PipelineShape& shape);

/// Returns the largest number of microbatches whose activations a stage keeps at a time: those
/// after their forward and before their last backward pass. Each is counted once per chunk.
Size peak_live(const std::vector<StagePass>& passes, PipelineSchedule schedule);

}  // namespace tessera
