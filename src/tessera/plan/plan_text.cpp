// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/folded_text.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/plan/plan_document.hpp>
#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

using nlohmann::json;

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

/// Up to this number of lines, the grid of ranks belongs to the summary.
constexpr auto most_grid_lines = 8;

void write_mesh(std::string& out, const PlanInput& input, const Topology& topology, bool in_full) {
  out +=
      fmt::format("Mesh {} ({}{}), strategy {}\n", input.mesh.to_string(),
                  counted(input.mesh.num_ranks(), "rank"),
                  input.threads > 0 ? fmt::format(" of {}", counted(input.threads, "thread")) : "",
                  name_of(input.strategy));
  const std::string grid = layout_text(input.mesh);
  if (in_full || std::count(grid.begin(), grid.end(), '\n') <= most_grid_lines) out += grid;
  out += nodes_line(topology, input.mesh);
}

std::string types_text(const PlanInput& input) {
  const std::string_view rounded = input.has_bf16_moments ? "; moments bfloat16" : "";
  if (!input.has_copies()) return fmt::format("{}{}", name_of(input.compute_type), rounded);
  return fmt::format("{}{}; parameters, gradients{} and sums {}{}{}", name_of(input.compute_type),
                     input.emulates_products() ? ", products emulated" : "",
                     input.has_bf16_moments ? "" : ", moments", name_of(input.state_type),
                     input.model_reduce_dtype == ModelReduceType::state
                         ? ""
                         : fmt::format(", those along model {}", name_of(input.compute_type)),
                     rounded);
}

/// A line of the table of tensors, which may stand for the tensors of several equal blocks.
struct TensorRow {
  std::string role, path, shape, spec, local;
  std::set<int> blocks{};  ///< numbers of the blocks
};

/// "(11, 4) on ranks 0-1; (10, 4) on rank 2", or "5 of (11, 4) on ..." of parts in shares
std::string local_text(const json& parts) {
  std::vector<std::string> texts;
  for (const json& part : parts) {
    const std::string kept = part.contains("kept_elements")
                                 ? fmt::format("{} of ", part["kept_elements"].get<Size>())
                                 : "";
    texts.push_back(fmt::format("{}{} on {}", kept, to_string(part["shape"].get<Shape>()),
                                part["ranks"].get<std::string>()));
  }
  return join(texts, "; ");
}

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
std::vector<TensorRow> tensor_rows(const json& tensors, std::size_t stage) {
  std::vector<TensorRow> rows;
  std::map<std::vector<std::string>, std::size_t> known;
  for (const json& tensor : tensors) {
    if (tensor["stage"] != stage) continue;
    TensorRow row{tensor["role"], tensor["path"], to_string(tensor["shape"].get<Shape>()),
                  tensor["spec"], local_text(tensor["local"])};
    const auto [name, number, rest] = split_at_number(row.path);
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

void write_tensors(std::string& out, const Plan& plan, const json& tensors) {
  out += fmt::format("\nTensors of a microbatch ({})\n{:<12} {:<25} {:<14} {:<18} {}\n",
                     types_text(plan.input), "  role", "path", "global shape", "PartitionSpec",
                     "local shape");
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (plan.stages.size() > 1)
      out += fmt::format(" stage {}: {}\n", stage, layers_text(plan, plan.stages[stage]));
    for (const TensorRow& row : tensor_rows(tensors, stage))
      out += fmt::format("  {:<10} {:<25} {:<14} {:<18} {}\n", row.role, row.path, row.shape,
                         row.spec, row.local);
  }
  std::string shares_over;  // the longest names; those of experts leave an axis out
  for (const json& tensor : tensors)
    if (const std::string axes = tensor.value("shares_over", ""); axes.size() > shares_over.size())
      shares_over = axes;
  if (const PlanInput& input = plan.input; !input.shard_moments_over.empty())
    shares_over =
        fmt::format("{}, or the part of it over {} that it updates",
                    input.mesh.group_name(shard_axes(input.strategy, input.mesh)), shares_over);
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
void write_memory(std::string& out, const json& groups) {
  const auto total = [](const json& group) { return group["bytes"]["total"].get<Size>(); };
  const auto less = [&](const json& a, const json& b) { return total(a) < total(b); };
  const json& most = *std::max_element(groups.begin(), groups.end(), less);
  const auto ranks = most["ranks"].get<std::string>();
  out += fmt::format("\nMemory per rank\n  {}{}: {}\n", ranks,
                     groups.size() == 1           ? ""
                     : ranks.starts_with("rank ") ? " needs most"
                                                  : " need most",
                     human_bytes(total(most)));
  for (const MemoryRow& row : memory_rows)
    if (const Size part = most["bytes"][row.name]; part > 0)
      out += fmt::format("    {:<15} {:>16} B\n", row.name, with_thousands(part));
  if (groups.size() > 1)
    out += fmt::format("  the other ranks: {} or more\n",
                       human_bytes(total(*std::min_element(groups.begin(), groups.end(), less))));
}

/// Returns "3 calls         1,024 B", in these widths, and a mark of calls that cross nodes after
/// `what`.
std::string call_text(const json& call, int count_width, int bytes_width, const std::string& what) {
  const Size calls = call["calls"];
  return fmt::format("{:<15} {:>{}} call{} {:>{}} B{}{}\n", call["operation"].get<std::string>(),
                     with_thousands(calls), count_width, calls == 1 ? " " : "s",
                     with_thousands(call["payload_bytes"].get<Size>()), bytes_width, what,
                     call.value("across_nodes", false) ? ", across nodes" : "");
}

/// Writes the calls of rank 0 in a step, by axis and operation.
void write_traffic(std::string& out, const json& calls) {
  out += "\nCalls of rank 0 in a step\n";
  if (calls.empty()) out += "  none\n";
  for (const json& call : calls)
    out += fmt::format("  {:<12} {}", call["axis"].get<std::string>(), call_text(call, 6, 18, ""));
}

/// Writes how many grains a fixed order of sums has.
void write_numerics(std::string& out, const Plan& plan) {
  const Numerics& numerics = plan.input.numerics;
  if (!numerics.reproducible) return;
  out += fmt::format("\nSums in a fixed order: {} of the batch, {} of what model may split\n",
                     counted(numerics.grains, "grain"), counted(numerics.model_grains, "grain"));
}

void write_collectives(std::string& out, const json& calls) {
  if (calls.empty()) out += "\nCollectives, on every rank\n  none\n";
  std::string ranks;
  for (const json& call : calls) {
    if (call["ranks"] != ranks) {
      ranks = call["ranks"].get<std::string>();
      out += fmt::format("\nCollectives, on {}\n", ranks);
    }
    out += fmt::format("  per {:<6} {:<8} {}", call["cadence"].get<std::string>(),
                       call["axis"].get<std::string>(),
                       call_text(call, 3, 14, "  " + call["what"].get<std::string>()));
  }
}

void write_checkpoint_bytes(std::string& out, const json& groups) {
  if (!groups.empty()) out += "\nCheckpoint bytes per rank\n";
  for (const json& group : groups)
    out += fmt::format("  {}: {} B written, {} B read\n", group["ranks"].get<std::string>(),
                       with_thousands(group["written_bytes"].get<Size>()),
                       with_thousands(group["read_bytes"].get<Size>()));
}

/// Writes the bubble of the pipeline for backward passes that take twice as long as forward passes,
/// and messages that take no time; and, if `draws`, the timeline.
void write_pipeline(std::string& out, const Plan& plan, bool draws) {
  const PipelineShape shape = plan.input.pipeline();
  if (shape.stages == 1) return;
  const PipelineShape listed = listed_passes(plan.input);
  const PassLists passes = order_passes(listed);
  const PipelineTimeline timeline = simulate_pipeline(add_messages(passes, listed), listed);
  out += fmt::format(
      "\nPipeline, schedule {}: bubble {:.1f} % if backward takes twice as long as forward\n",
      schedule_name(shape), 100 * bubble_of(timeline, listed, shape));
  if (!draws) return;
  out += draw(timeline, shape);
  out += "  microbatches whose activations each stage keeps at once:";
  for (const std::vector<StagePass>& stage : passes)
    out += fmt::format(" {}", peak_live(stage, shape));
  out += "\n";
}

void write_schedule(std::string& out, const json& actions, std::size_t stage) {
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
  Size pending = 1, last = 0;  // times and microbatch of the previous action
  for (const json& action : actions) {
    if (action["stage"] != stage) continue;
    const Size times = action.value("microbatches", Size{1});
    if (times < pending)
      texts.push_back(last == 0
                          ? fmt::format("(the same for m1 to m{})", pending - 1)
                          : fmt::format("(the same {} times for later microbatches)", pending - 1));
    pending = times;
    last = action["microbatch"];
    texts.push_back(action["text"].get<std::string>());
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
  const json document = plan_document(plan, topology, parts, &RankClasses::describe);
  std::string out;
  write_mesh(out, plan.input, topology, parts.tensors);
  write_model(out, plan);
  if (parts.tensors) write_tensors(out, plan, document["tensors"]);
  write_memory(out, document["memory"]);
  write_numerics(out, plan);
  if (parts.calls) {
    write_collectives(out, document["collectives"]);
    write_checkpoint_bytes(out, document["checkpoint"]);
  } else {
    write_traffic(out, document["traffic_of_rank_0"]);
  }
  write_pipeline(out, plan, parts.schedule);
  for (std::size_t stage = 0; parts.schedule && stage < plan.stages.size(); ++stage) {
    out += "\nSchedule of a step";
    if (plan.stages.size() > 1) out += fmt::format(", stage {}", stage);
    write_schedule(out, document["actions"], stage);
  }
  out += fmt::format(
      "\nSteps per epoch: {}\nFLOPs per step, all ranks: {} (forward {}, backward {}){}{}\n",
      plan.steps_per_epoch(), count_text(plan.flops.total()), count_text(plan.flops.forward),
      count_text(plan.flops.backward),
      plan.orthogonalization == 0
          ? ""
          : fmt::format(", plus {} of muon", count_text(plan.orthogonalization)),
      plan.recomputed == 0 ? "" : fmt::format(", plus {} recomputed", count_text(plan.recomputed)));
  if (!plan.recomputed_layers.empty()) {
    std::vector<std::string> counts;
    for (const auto& [kind, layers] : plan.recomputed_layers)
      counts.push_back(fmt::format("{} {}", layers, kind));
    out += fmt::format("Layers recomputed in each microbatch: {}\n", fmt::join(counts, ", "));
  }
  if (const std::vector<PassCount> flops = plan.flops_along_context(); flops.size() > 1) {
    out += "FLOPs per step by coordinate of context:";
    for (const PassCount& part : flops) out += " " + count_text(part.total());
    out += "\n";
  }
  return out;
}

}  // namespace tessera
