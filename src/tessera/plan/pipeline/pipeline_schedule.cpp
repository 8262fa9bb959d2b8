// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/plan/pipeline/pipeline_schedule.hpp>

namespace tessera {
namespace {

using Passes = std::vector<StagePass>;

/// Passes of one stage, in which each kind of a chunk has its microbatches in order.
struct PassList {
  Passes passes{};
  std::map<std::string, Size> next{};  ///< microbatch, by name

  /// Adds passes with these names: letters and chunks, such as "F0 I1".
  void add(Size times, std::string_view names) {
    for (; times > 0; --times)
      for (const std::string& name : split_text(names, ' '))
        passes.push_back(
            {static_cast<PassKind>(pass_letters.find(name[0])), next[name]++, name[1] - '0'});
  }
};

void order_gpipe(PassList& list, const PipelineShape& shape, Size) {
  list.add(shape.microbatches, "F0");
  list.add(shape.microbatches, "B0");
}

void order_1f1b(PassList& list, const PipelineShape& shape, Size stage) {
  const Size warm_up = std::min(shape.stages - stage - 1, shape.microbatches);
  list.add(warm_up, "F0");
  list.add(shape.microbatches - warm_up, "F0 B0");
  list.add(warm_up, "B0");
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

/// Returns the number of groups of microbatches: as many as possible with at least `stages`
/// microbatches each, or one group if there are fewer than `stages`.
Size interleaved_groups(const PipelineShape& shape) {
  return std::max<Size>(1, shape.microbatches / shape.stages);
}

/// 1F1B in which a group of microbatches passes all chunks before the next group begins. In a group
/// of at least `stages` microbatches, no stage waits for the first one to come back for the next
/// chunk. The first groups may have one microbatch more.
void order_interleaved(PassList& list, const PipelineShape& shape, Size stage) {
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
  list.passes = one_in_turn(forward, backward, 2 * (p - stage - 1) + (v - 1) * largest);
}

/// 1F1B in which stage k computes gradients of weights k microbatches later than gradients of
/// inputs. So input gradients reach the previous stage sooner, and every stage keeps as many
/// microbatches as the first one: min(p, m).
void order_zero_bubble(PassList& list, const PipelineShape& shape, Size k) {
  const Size m = shape.microbatches, warm_up = std::min(shape.stages - k - 1, m),
             delayed = std::min(k, m);
  list.add(warm_up, "F0");
  list.add(std::min(m - warm_up, delayed), "F0 I0");
  list.add(m - warm_up - delayed, "F0 I0 W0");
  list.add(delayed + warm_up - m, "I0");
  list.add(std::min(warm_up, m - delayed), "I0 W0");
  list.add(delayed, "W0");
}

/// Forward passes of the V until its end, then all passes of a microbatch in turn. At the end, as
/// many weight gradients are left as there are gaps between input gradients. Needs 2p - 1
/// microbatches: order_passes() leaves out those that are too many.
void order_zbv(PassList& list, const PipelineShape& shape, Size k) {
  const Size p = shape.stages, m = std::max(shape.microbatches, 2 * p - 1);
  list.add(2 * (p - k) - 1, "F0");
  list.add(k, "F1 F0");
  list.add(p - k, "F1 I1 W1");
  list.add(m - 2 * p + k + 1, "F0 I0 W0 F1 I1 W1");
  list.add(p - k - 1, "I0 W0 F1 I1 W1");
  list.add(k, "I0 I1");
  list.add(p - k, "I0 W0");
  list.add(k, "W1");
  list.add(k, "W0");
}

/// In the steady state, forward passes of a chunk and backward passes of the other one come in
/// pairs, which DualPipe overlaps. Weight gradients follow input gradients but in the second half
/// of the last k + 1 pairs, so that they fill gaps. Needs 2p microbatches.
void order_dualpipev(PassList& list, const PipelineShape& shape, Size k) {
  const Size p = shape.stages, m = std::max(shape.microbatches, 2 * p), half = (k + 1) / 2;
  list.add(2 * (p - k - 1), "F0");
  list.add(k + 1, "F0 F1");
  list.add(p - k - 1, "I1 W1 F1");
  list.add(m - 2 * p + k + 1, "F0 I1 W1 F1 I0 W0");
  list.add(p - k - 1, "I1 W1 F1 I0 W0");
  list.add(half, "I1 W1 I0 W0");
  if (k % 2 == 0) list.add(1, "I1 W1 I0");
  list.add(half, "I1 I0");
  for (Size n = 0; n < p; ++n) {  // the oldest weight gradients first
    list.add(1, n <= k && (n + k) % 2 == 1 ? "W1" : "W0");
    if (n < p - k - 1) list.add(1, "I0");
  }
}

constexpr std::array whole_passes{PassKind::forward, PassKind::backward};
constexpr std::array split_passes{PassKind::forward, PassKind::input_gradients,
                                  PassKind::weight_gradients};

/// The properties of a schedule, in the order of the enumerators.
struct PipelineRow {
  void (*order)(PassList& list, const PipelineShape& shape, Size stage);
  std::span<const PassKind> kinds;
  Size chunks = 1;  ///< of a stage; 0: any number
  bool is_v = false;
};
constexpr std::array<PipelineRow, names_of<PipelineSchedule>.size()> pipeline_rows{{
    {order_gpipe, whole_passes},
    {order_1f1b, whole_passes},
    {order_interleaved, whole_passes, 0},
    {order_zero_bubble, split_passes},
    {order_zbv, split_passes, 2, true},
    {order_dualpipev, split_passes, 2, true},
}};
PipelineRow row_of(const PipelineShape& shape) {
  if (!shape.table) return pipeline_rows[static_cast<std::size_t>(shape.schedule)];
  PipelineRow row{nullptr, whole_passes, 0, shape.table->is_v};
  if (shape.table->splits_backward) row.kinds = split_passes;
  return row;
}

}  // namespace

Size chunk_number(Size stage, Size chunk, const PipelineShape& shape) {
  const bool comes_back = row_of(shape).is_v && chunk % 2 == 1;
  return chunk * shape.stages + (comes_back ? shape.stages - 1 - stage : stage);
}

Size stage_of(Size number, const PipelineShape& shape) {
  const Size p = shape.stages;
  return chunk_number(number % p, number / p, shape) % p;  // each way back is the way there
}

std::string schedule_name(const PipelineShape& shape) {
  return shape.table ? shape.table->file : std::string(name_of(shape.schedule));
}

void check_shape(const PipelineShape& shape) {
  const Size chunks = row_of(shape).chunks;
  if (chunks > 0 && shape.virtual_stages != chunks)
    throw ConfigError("distributed.virtual_stages", std::to_string(shape.virtual_stages),
                      "must be {} with schedule {}; interleaved allows any number", chunks,
                      name_of(shape.schedule));
}

std::string to_string(const StagePass& pass, const PipelineShape& shape) {
  const std::string text = fmt::format("{} of microbatch {}", name_of(pass.kind), pass.microbatch);
  return shape.virtual_stages == 1 ? text : fmt::format("{} in chunk {}", text, pass.chunk);
}

std::string short_name(const StagePass& pass, const PipelineShape& shape) {
  const char letter = pass_letters[static_cast<std::size_t>(pass.kind)];
  std::string name = fmt::format("{}{}", letter == 'I' ? 'B' : letter, pass.microbatch);
  constexpr Size letters = 26;
  if (shape.virtual_stages == 1) return name;
  return pass.chunk < letters ? name + static_cast<char>('a' + pass.chunk)
                              : fmt::format("{}.{}", name, pass.chunk);
}

std::span<const PassKind> kinds_of(const PipelineShape& shape) { return row_of(shape).kinds; }

Size period_of(const PipelineShape& shape) {
  const PipelineRow row = row_of(shape);
  if (shape.schedule == PipelineSchedule::gpipe || row.is_v || shape.table) return 0;
  if (row.chunks == 1) return 1;
  const Size groups = interleaved_groups(shape);
  return shape.microbatches % groups == 0 ? shape.microbatches / groups : 0;
}

PassLists order_passes(const PipelineShape& shape) {
  check_shape(shape);
  if (shape.table) {
    const auto rows = std::ssize(shape.table->passes);
    if (rows != shape.stages || shape.table->microbatches != shape.microbatches)
      throw ConfigError("distributed.schedule_file", fmt::format("\"{}\"", shape.table->file),
                        "is for pipeline={} and training.microbatches = {}, not {} and {}", rows,
                        shape.table->microbatches, shape.stages, shape.microbatches);
    return shape.table->passes;
  }
  PassLists lists;
  for (Size stage = 0; stage < shape.stages; ++stage) {
    PassList list;
    row_of(shape).order(list, shape, stage);
    std::erase_if(list.passes, [&](auto& pass) { return pass.microbatch >= shape.microbatches; });
    lists.push_back(std::move(list.passes));
  }
  return lists;
}

Size peak_live(const std::vector<StagePass>& passes, const PipelineShape& shape) {
  const PassKind last = kinds_of(shape).back();
  Size live = 0, peak = 0;
  for (const StagePass& pass : passes) {
    if (pass.kind == PassKind::forward) peak = std::max(peak, ++live);
    if (pass.kind == last) --live;
  }
  return peak;
}

}  // namespace tessera
