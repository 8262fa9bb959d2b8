// SPDX-License-Identifier: Apache-2.0
// In which order the stages of a pipeline compute: data, made and checked before anything runs.
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
  one_f_one_b,  ///< a backward pass as soon as there is one (PipeDream-flush)
  interleaved,  ///< 1F1B on several chunks of layers a stage (Narayanan et al. 2021)
  zero_bubble,  ///< 1F1B with weight gradients put off: ZB-H1 of Qi et al. 2024
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<PipelineSchedule>{
    "gpipe", "1f1b", "interleaved", "zero_bubble"};

/// What a stage does with one microbatch in one go.
enum class PassKind : std::uint8_t {
  forward,
  backward,          ///< gradients of inputs and of parameters
  input_gradients,   ///< the half of a backward pass that the stage before waits for
  weight_gradients,  ///< the other half, for which nobody waits
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<PassKind>{
    "forward", "backward", "input_gradients", "weight_gradients"};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Size stages = 1;
  Size microbatches = 1;
  Size virtual_stages = 1;  ///< chunks of layers on a stage; chunk c of stage k is the (c p + k)-th
};

/// One entry of a stage's list.
struct StagePass {
  PassKind kind = PassKind::forward;
  Size microbatch = 0;
  Size chunk = 0;  ///< of this stage, the one with the first layers first
  friend auto operator<=>(const StagePass&, const StagePass&) = default;
  // nvcc declares the one that follows from <=> and does not define it.
  friend bool operator==(const StagePass&, const StagePass&) = default;
};
/// Where a pass stands in the actions of its stage.
struct PassSpan {
  StagePass pass{};
  Range actions{};
};
using PassLists = std::vector<std::vector<StagePass>>;  ///< by stage

/// "F3", with several chunks "F3b"; "B" of a backward pass or of its first half, "W" of its second.
std::string short_name(const StagePass& pass, const PipelineShape& shape);
/// "forward of microbatch 3", with several chunks "forward of microbatch 3 in chunk 1"
std::string to_string(const StagePass& pass, const PipelineShape& shape);

/// The kinds of passes that a chunk does for each microbatch, in this order. Some schedules split
/// the backward pass.
std::span<const PassKind> kinds_of(PipelineSchedule schedule);

/// Throws ConfigError for chunks that the schedule does not have, and where it needs microbatches
/// that its stages divide evenly.
void check_shape(const PipelineShape& shape);

/// The passes of every stage, in their order, of a shape that can be.
PassLists order_passes(const PipelineShape& shape);

/// The most microbatches, counted once for each chunk, of which stage k keeps activations at a
/// time.
Size peak_live(const std::vector<StagePass>& passes, PipelineSchedule schedule);

}  // namespace tessera
