// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/plan/pipeline/pipeline_schedule.hpp>

namespace tessera {
namespace {

using Passes = std::vector<StagePass>;

Passes each_microbatch(PassKind kind, const PipelineShape& shape) {
  Passes passes;
  for (Size m = 0; m < shape.microbatches; ++m) passes.push_back({kind, m});
  return passes;
}

/// Returns up to `warm_up` forward passes, then forward and backward passes alternately, then the
/// remaining backward passes.
Passes one_in_turn(const Passes& forward, const Passes& backward, Size warm_up) {
  auto next = forward.begin() + std::min(warm_up, static_cast<Size>(forward.size()));
  Passes passes(forward.begin(), next);
  for (const StagePass& pass : backward) {
    if (next != forward.end()) passes.push_back(*next++);
    passes.push_back(pass);
  }
  return passes;
}

Passes order_gpipe(const PipelineShape& shape, Size) {
  return one_in_turn(each_microbatch(PassKind::forward, shape),
                     each_microbatch(PassKind::backward, shape), shape.microbatches);
}

Passes order_1f1b(const PipelineShape& shape, Size stage) {
  return one_in_turn(each_microbatch(PassKind::forward, shape),
                     each_microbatch(PassKind::backward, shape), shape.stages - stage - 1);
}

/// Returns the number of groups of microbatches: as many as possible with at least `stages`
/// microbatches each, or one group if there are fewer than `stages`.
Size interleaved_groups(const PipelineShape& shape) {
  return std::max<Size>(1, shape.microbatches / shape.stages);
}

/// 1F1B in which a group of microbatches passes all chunks before the next group begins. In a group
/// of at least `stages` microbatches, no stage waits for the first one to come back for the next
/// chunk. The first groups may have one microbatch more.
Passes order_interleaved(const PipelineShape& shape, Size stage) {
  const Size p = shape.stages, v = shape.virtual_stages, groups = interleaved_groups(shape);
  Passes forward, backward;
  for (Size g = 0; g < groups; ++g) {
    const Range group = balanced_split(shape.microbatches, groups, g);
    for (Size chunk = 0; chunk < v; ++chunk)
      for (Size m = group.begin; m < group.end(); ++m) {
        forward.push_back({PassKind::forward, m, chunk});
        backward.push_back({PassKind::backward, m, v - 1 - chunk});
      }
  }
  const Size largest = balanced_split(shape.microbatches, groups, 0).count;
  return one_in_turn(forward, backward, 2 * (p - stage - 1) + (v - 1) * largest);
}

/// 1F1B in which stage k computes gradients of weights k microbatches later than gradients of
/// inputs. So input gradients reach the previous stage sooner, and every stage keeps as many
/// microbatches as the first one: min(p, m).
Passes order_zero_bubble(const PipelineShape& shape, Size stage) {
  Passes passes;
  Size weights = 0;
  for (const StagePass& pass : order_1f1b(shape, stage)) {
    if (pass.kind == PassKind::forward) {
      passes.push_back(pass);
      continue;
    }
    passes.push_back({PassKind::input_gradients, pass.microbatch});
    if (pass.microbatch >= stage) passes.push_back({PassKind::weight_gradients, weights++});
  }
  while (weights < shape.microbatches) passes.push_back({PassKind::weight_gradients, weights++});
  return passes;
}

constexpr std::array whole_passes{PassKind::forward, PassKind::backward};
constexpr std::array split_passes{PassKind::forward, PassKind::input_gradients,
                                  PassKind::weight_gradients};

/// The properties of a schedule, in the order of the enumerators.
struct PipelineRow {
  Passes (*order)(const PipelineShape& shape, Size stage);
  std::span<const PassKind> kinds;
  bool has_chunks = false;
};
constexpr std::array<PipelineRow, names_of<PipelineSchedule>.size()> pipeline_rows{{
    {order_gpipe, whole_passes},
    {order_1f1b, whole_passes},
    {order_interleaved, whole_passes, true},
    {order_zero_bubble, split_passes},
}};
const PipelineRow& row_of(PipelineSchedule schedule) {
  return pipeline_rows[static_cast<std::size_t>(schedule)];
}

}  // namespace

void check_shape(const PipelineShape& shape) {
  if (!row_of(shape.schedule).has_chunks && shape.virtual_stages != 1)
    throw ConfigError("distributed.virtual_stages", std::to_string(shape.virtual_stages),
                      "must be 1 with schedule {}; only interleaved allows more",
                      name_of(shape.schedule));
}

std::string to_string(const StagePass& pass, const PipelineShape& shape) {
  const std::string text = fmt::format("{} of microbatch {}", name_of(pass.kind), pass.microbatch);
  return shape.virtual_stages == 1 ? text : fmt::format("{} in chunk {}", text, pass.chunk);
}

std::string short_name(const StagePass& pass, const PipelineShape& shape) {
  constexpr std::array letters{'F', 'B', 'B', 'W'};
  const char letter = letters[static_cast<std::size_t>(pass.kind)];
  std::string name = fmt::format("{}{}", letter, pass.microbatch);
  if (shape.virtual_stages > 1) name += static_cast<char>('a' + pass.chunk);
  return name;
}

std::span<const PassKind> kinds_of(PipelineSchedule schedule) { return row_of(schedule).kinds; }

Size period_of(const PipelineShape& shape) {
  if (shape.schedule == PipelineSchedule::gpipe) return 0;
  if (!row_of(shape.schedule).has_chunks) return 1;
  const Size groups = interleaved_groups(shape);
  return shape.microbatches % groups == 0 ? shape.microbatches / groups : 0;
}

PassLists order_passes(const PipelineShape& shape) {
  check_shape(shape);
  PassLists lists;
  for (Size stage = 0; stage < shape.stages; ++stage)
    lists.push_back(row_of(shape.schedule).order(shape, stage));
  return lists;
}

Size peak_live(const std::vector<StagePass>& passes, PipelineSchedule schedule) {
  const PassKind last = kinds_of(schedule).back();
  Size live = 0, peak = 0;
  for (const StagePass& pass : passes) {
    if (pass.kind == PassKind::forward) peak = std::max(peak, ++live);
    if (pass.kind == last) --live;
  }
  return peak;
}

}  // namespace tessera
