// SPDX-License-Identifier: Apache-2.0
// The order of passes on the stages of a pipeline: data, made and checked before a step runs.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
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
  zbv,          ///< two chunks a stage, placed as a V (ZB-V, Qi et al. 2024)
  dualpipev,    ///< DualPipe of half the stages, placed as a V (DeepSeek-AI 2025, Qi et al. 2025)
};
template <>
inline constexpr std::array<std::string_view, 6> names_of<PipelineSchedule>{
    "gpipe", "1f1b", "interleaved", "zero_bubble", "zbv", "dualpipev"};

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

struct PassTable;

inline constexpr std::string_view pass_letters = "FBIW";  ///< by PassKind

/// The numbers that determine the passes of a pipeline.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Size stages = 1;
  Size microbatches = 1;
  Size virtual_stages = 1;                   ///< chunks per stage
  std::shared_ptr<const PassTable> table{};  ///< passes of a file, in place of `schedule`
};

/// A pass of a stage.
struct StagePass {
  PassKind kind = PassKind::forward;
  Size microbatch = 0;
  Size chunk = 0;  ///< number of the chunk on this stage, in the order of layers
  auto operator<=>(const StagePass&) const = default;
};

/// The positions of a pass in StagePlan::actions.
struct PassSpan {
  StagePass pass{};
  Range actions{};
};
using PassLists = std::vector<std::vector<StagePass>>;  ///< by stage

/// The passes of a pipeline that a file lists (read_passes()).
struct PassTable {
  std::string file{};
  PassLists passes{};
  Size microbatches = 0, virtual_stages = 0;
  bool splits_backward = false, is_v = false;
};

/// Reads the format of PyTorch's _PipelineScheduleRuntime with computations only: a row per stage
/// of the mesh, whose cells are passes in order, such as "3I0": the number of a chunk in the order
/// of layers (PyTorch calls it a stage); F forward, I input gradients, W weight gradients or B
/// both; and a microbatch. Empty cells and rows have no effect. In a file with I and W, B is I and
/// then W. Chunks lie as a loop or as a V (chunk_number()). `file` stands in messages. Throws
/// ConfigError, which names row and column, if a cell is no pass, if a pass is missing, repeated or
/// out of order, if chunks lie otherwise, or if stages would wait for each other forever.
std::shared_ptr<const PassTable> read_passes(const std::string& text, const std::string& file);

/// Returns the number of a stage's chunk in the order of layers, with p stages: c p + k for chunk c
/// of stage k, a loop. In a V, odd chunks go back from the last stage to the first: (c + 1) p - 1 -
/// k. Chunk number n is chunk n / p of its stage.
Size chunk_number(Size stage, Size chunk, const PipelineShape& shape);
/// Returns the stage of a chunk by its number in the order of layers.
Size stage_of(Size number, const PipelineShape& shape);

/// Returns the name of the schedule, or the file that lists the passes.
std::string schedule_name(const PipelineShape& shape);
/// Returns "F3" for the forward pass of microbatch 3, or "F3b" with several chunks. "B" is a
/// backward pass or its input_gradients, "W" its weight_gradients.
std::string short_name(const StagePass& pass, const PipelineShape& shape);
/// Returns "forward of microbatch 3", or "forward of microbatch 3 in chunk 1" with several chunks.
std::string to_string(const StagePass& pass, const PipelineShape& shape);

/// Returns the kinds of passes of a microbatch in a chunk, in order: forward and backward, or
/// forward, input_gradients and weight_gradients.
std::span<const PassKind> kinds_of(const PipelineShape& shape);

/// Throws ConfigError if the schedule needs another number of chunks.
void check_shape(const PipelineShape& shape);

/// Returns the number of microbatches after which the passes of every stage repeat in the steady
/// state; 0 if they do not, or are not known to: with gpipe, in a V, from a file, and if groups of
/// interleaved microbatches differ in size.
Size period_of(const PipelineShape& shape);

/// Returns the passes of every stage in their order. Throws ConfigError as check_shape() does, and
/// if the file has another number of stages or microbatches.
PassLists order_passes(const PipelineShape& shape);

/// Returns the largest number of microbatches whose activations a stage keeps at a time: those
/// after their forward and before their last backward pass. Each is counted once per chunk.
Size peak_live(const std::vector<StagePass>& passes, const PipelineShape& shape);

}  // namespace tessera
