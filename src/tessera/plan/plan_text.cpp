// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/folded_text.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/plan/plan_document.hpp>
#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

std::string count_text(double count) {
  return count < 0x1p53 ? with_thousands(static_cast<Size>(count)) : fmt::format("{:.4g}", count);
}

/// Returns a text such as "layer1/product to layer2/output", joined for all chunks of the stage.
std::string layers_text(const Plan& plan, const StagePlan& stage) {
  std::vector<std::string> chunks;
  for (const Range& layers : stage.chunks)
    chunks.push_back(fmt::format("{} to {}", plan.input.model.layers[layers.begin].name,
                                 plan.input.model.layers[layers.end() - 1].name));
  return join(chunks);
}

std::string part_text(const Slot& tensor, const LocalPart& part) {
  if (!tensor.in_shares) return to_string(part.shape);
  return fmt::format("{} of {}", part.kept, to_string(part.shape));
}

/// Up to this number of lines, the grid of ranks belongs to the summary.
constexpr auto most_grid_lines = 8;

void write_mesh(std::string& out, const PlanDocument& document) {
  const PlanInput& input = document.plan.input;
  out +=
      fmt::format("Mesh {} ({}{}), strategy {}\n", input.mesh.to_string(),
                  counted(input.mesh.num_ranks(), "rank"),
                  input.threads > 0 ? fmt::format(" of {}", counted(input.threads, "thread")) : "",
                  name_of(input.strategy));
  const std::string grid = layout_text(input.mesh);
  if (document.parts.tensors || std::count(grid.begin(), grid.end(), '\n') <= most_grid_lines)
    out += grid;
  out += nodes_line(document.topology, input.mesh);
}

std::string types_text(const PlanInput& input) {
  if (!input.has_copies()) return std::string(name_of(input.compute_type));
  return fmt::format(
      "{}{}; parameters, gradients, moments and sums {}", name_of(input.compute_type),
      input.emulates_products ? ", products emulated" : "", name_of(input.state_type));
}

/// A line of the table of tensors, which may stand for the tensors of several equal blocks.
struct TensorRow {
  std::string role, path, shape, spec, local;
  std::set<int> blocks;  ///< numbers of the blocks
};

/// Splits "block12/fc1/kernel" into "block", "12" and "/fc1/kernel". Without a number, the last two
/// are empty.
std::array<std::string, 3> split_at_number(const std::string& path) {
  const std::size_t end = std::min(path.find('/'), path.size());
  std::size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(path[begin - 1])) != 0) --begin;
  if (begin == end || end - begin > 9) return {path, "", ""};
  return {path.substr(0, begin), path.substr(begin, end - begin), path.substr(end)};
}

/// Returns the tensors of a stage. Those of blocks that differ in their number only share a row.
std::vector<TensorRow> tensor_rows(const std::vector<PlanDocument::Tensor>& tensors) {
  std::vector<TensorRow> rows;
  std::map<std::vector<std::string>, std::size_t> known;
  for (const PlanDocument::Tensor& tensor : tensors) {
    const Slot& slot = *tensor.slot;
    TensorRow row{
        std::string(name_of(slot.role)), slot.path, to_string(slot.shape), tensor.spec, {}, {}};
    for (const auto& [part, classes] : tensor.local.groups) {
      if (!row.local.empty()) row.local += "; ";
      row.local += part_text(slot, part) + " on " + tensor.local.ranks.describe(classes);
    }
    const auto [name, number, rest] = split_at_number(slot.path);
    const int block = number.empty() ? 0 : std::stoi(number);
    const auto [at, is_new] =
        known.try_emplace({row.role, name, rest, row.shape, row.spec, row.local}, rows.size());
    if (number.empty() || is_new || !rows[at->second].blocks.insert(block).second) {
      at->second = rows.size();
      row.blocks = {block};
      rows.push_back(std::move(row));
    }
  }
  for (TensorRow& row : rows)
    if (row.blocks.size() > 1) {
      const auto [name, number, rest] = split_at_number(row.path);
      const std::vector<int> blocks(row.blocks.begin(), row.blocks.end());
      row.path = fmt::format("{}{{{}}}{}", name, number_ranges(blocks), rest);
    }
  return rows;
}

void write_tensors(std::string& out, const PlanDocument& document) {
  const Plan& plan = document.plan;
  out += fmt::format("\nTensors of a microbatch ({})\n{:<12} {:<25} {:<14} {:<18} {}\n",
                     types_text(plan.input), "  role", "path", "global shape", "PartitionSpec",
                     "local shape");
  std::string shares_over;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.stages.size() > 1)
      out += fmt::format(" stage {}: {}\n", stage, layers_text(plan, plan.stages[stage]));
    for (const TensorRow& row : tensor_rows(document.stages[stage].tensors))
      out += fmt::format("  {:<10} {:<25} {:<14} {:<18} {}\n", row.role, row.path, row.shape,
                         row.spec, row.local);
    for (const PlanDocument::Tensor& tensor : document.stages[stage].tensors)
      if (tensor.slot->in_shares && (shares_over.empty() || !tensor.slot->by_expert))
        shares_over = tensor.shares_over;
  }
  if (!shares_over.empty())
    out += fmt::format(
        "  \"n of (...)\": a rank keeps n elements of its block, those in its share of "
        "the flat bucket over {}{}\n",
        shares_over,
        plan.input.mesh.size_of("expert") > 1 ? ", those of experts without expert" : "");
}

void write_model(std::string& out, const Plan& plan) {
  out += fmt::format("\n{} parameters ({})\n", with_thousands(plan.input.model.num_parameters()),
                     types_text(plan.input));
}

/// Writes the memory of the ranks that need most, and how much the others need.
void write_memory(std::string& out, const PlanDocument& document) {
  const auto less = [](const auto& a, const auto& b) { return a.value.total() < b.value.total(); };
  const auto& [ranks, all] = document.memory;
  const auto least = std::min_element(all.begin(), all.end(), less),
             most = std::max_element(all.begin(), all.end(), less);
  const MemoryPlan& bytes = most->value;
  out += fmt::format("\nMemory per rank\n  {}{}: {}\n", ranks.describe(most->classes),
                     all.size() == 1                       ? ""
                     : ranks.num_ranks(most->classes) == 1 ? " needs most"
                                                           : " need most",
                     human_bytes(bytes.total()));
  for (const MemoryRow& row : memory_rows)
    if (const Size part = bytes.*row.bytes; part > 0)
      out += fmt::format("    {:<15} {:>16} B\n", row.name, with_thousands(part));
  if (all.size() > 1)
    out += fmt::format("  the other ranks: {} or more\n", human_bytes(least->value.total()));
}

/// Writes the calls of rank 0 in a step, by axis and operation.
void write_traffic(std::string& out, const PlanDocument& document) {
  out += "\nCalls of rank 0 in a step\n";
  if (document.traffic.empty()) out += "  none\n";
  for (const LedgerRow& row : document.traffic)
    out += fmt::format("  {:<12} {:<15} {:>6} call{} {:>18} B{}\n", row.axis,
                       name_of(row.operation), with_thousands(row.calls),
                       row.calls == 1 ? " " : "s", with_thousands(row.payload_bytes),
                       document.crosses(row.axis) ? ", across nodes" : "");
}

/// Writes what a fixed order of sums adds to the step of the first rank.
void write_numerics(std::string& out, const Plan& plan) {
  const Numerics& numerics = plan.input.numerics;
  if (!numerics.reproducible) return;
  PlanInput input = plan.input;
  input.numerics.reproducible = false;
  const Plan ordinary = make_plan(input);
  out += fmt::format(
      "\nSums in a fixed order: {} of the batch, {} of what model may split\n"
      "  rank 0 needs {:+} B of memory and sends {:+} B per step, compared with any order\n",
      counted(numerics.grains, "grain"), counted(numerics.model_grains, "grain"),
      plan.memory(0).total() - ordinary.memory(0).total(), step_bytes(plan) - step_bytes(ordinary));
}

void write_collectives(std::string& out, const PlanDocument& document) {
  for (const auto& [calls, classes] : document.calls->groups) {
    out += fmt::format("\nCollectives, on {}\n", document.calls->ranks.describe(classes));
    if (calls.empty()) out += "  none\n";
    for (const CollectivePlan& c : calls)
      out += fmt::format("  per {:<6} {:<8} {:<15} {:>3} call{} {:>14} B  {}{}\n",
                         name_of(c.cadence), c.axis, name_of(c.operation), c.calls,
                         c.calls == 1 ? " " : "s", with_thousands(c.payload_bytes), c.what,
                         document.crosses(c.axis) ? ", across nodes" : "");
  }
}

void write_checkpoint_bytes(std::string& out, const PlanDocument& document) {
  if (!document.checkpoint) return;
  out += "\nCheckpoint bytes per rank\n";
  for (const auto& [bytes, classes] : document.checkpoint->groups)
    out +=
        fmt::format("  {}: {} B written, {} B read\n", document.checkpoint->ranks.describe(classes),
                    with_thousands(bytes.written), with_thousands(bytes.read));
}

/// Writes the bubble of the pipeline for backward passes that take twice as long as forward passes,
/// and messages that take no time; and, if `draws`, the timeline.
void write_pipeline(std::string& out, const Plan& plan, bool draws) {
  const PipelineShape shape = plan.input.pipeline();
  if (shape.stages == 1) return;
  const PassLists passes = order_passes(shape);
  const PipelineTimeline timeline = simulate_pipeline(add_messages(passes, shape), shape);
  out += fmt::format(
      "\nPipeline, schedule {}: bubble {:.1f} % if backward takes twice as long as forward\n",
      name_of(shape.schedule), 100 * timeline.bubble);
  if (!draws) return;
  out += draw(timeline, shape);
  out += "  microbatches whose activations each stage keeps at once:";
  for (const std::vector<StagePass>& stage : passes)
    out += fmt::format(" {}", peak_live(stage, shape.schedule));
  out += "\n";
}

void write_schedule(std::string& out, const std::vector<PlanDocument::Entry>& actions) {
  out += "\n ";
  std::size_t column = 1;
  const auto write = [&](const std::string& text) {
    if (column + text.size() > 100) {
      out += "\n ";
      column = 1;
    }
    out += text;
    column += text.size();
  };
  std::vector<std::string> texts;
  Size pending = 1;  // times of the previous action
  for (const PlanDocument::Entry& entry : actions) {
    if (entry.times < pending)
      texts.push_back(fmt::format("(the same for m1 to m{})", pending - 1));
    pending = entry.times;
    texts.push_back(entry.text);
  }
  for (const std::string& text : folded(texts)) {
    int depth = 0;  // of parentheses, in which no line breaks
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
      if (text[at] != ' ' || depth > 0) continue;
      write(" " + text.substr(begin, at - begin));
      begin = at + 1;
    }
    write(" " + text.substr(begin));
  }
  out += "\n";
}

}  // namespace

std::string to_text(const Plan& plan, const Topology& topology, PlanParts parts) {
  const PlanDocument document(plan, topology, parts);
  std::string out;
  write_mesh(out, document);
  write_model(out, plan);
  if (parts.tensors) write_tensors(out, document);
  write_memory(out, document);
  write_numerics(out, plan);
  parts.calls ? write_collectives(out, document) : write_traffic(out, document);
  write_checkpoint_bytes(out, document);
  write_pipeline(out, plan, parts.schedule);
  for (std::size_t stage = 0; parts.schedule && stage < plan.stages.size(); ++stage) {
    out += "\nSchedule of a step";
    if (plan.stages.size() > 1) out += fmt::format(", stage {}", stage);
    write_schedule(out, document.stages[stage].actions);
  }
  out += fmt::format(
      "\nSteps per epoch: {}\nFLOPs per step, all ranks: {} (forward {}, backward {}){}\n",
      plan.steps_per_epoch(), count_text(plan.flops.total()), count_text(plan.flops.forward),
      count_text(plan.flops.backward),
      plan.recomputed == 0 ? "" : fmt::format(", plus {} recomputed", count_text(plan.recomputed)));
  if (const std::vector<PassCount> flops = plan.flops_along_context(); flops.size() > 1) {
    out += "FLOPs per step by coordinate of context:";
    for (const PassCount& part : flops) out += " " + count_text(part.total());
    out += "\n";
  }
  return out;
}

}  // namespace tessera
