// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <tessera/app/advice_text.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/predict/machine_file.hpp>

namespace tessera {
namespace {

constexpr std::size_t shown_too_large = 5;

std::span<const Candidate> first(const std::vector<Candidate>& list, std::size_t number) {
  return std::span(list).first(std::min(number, list.size()));
}

/// The columns that both lists of candidates have.
using Cells = std::array<std::string, 5>;
const Cells head{"strategy", "mesh", "microbatches", "recompute", "memory"};

/// Returns the mesh, how attention reads other positions if that is not the default, and the
/// threads of a rank if they are set.
std::string mesh_of(const Candidate& one) {
  const DistributedConfig& distributed = one.config.training.distributed;
  const ContextAttention way = distributed.context_attention;
  std::string text = one.mesh.to_string();
  if (way != DistributedConfig{}.context_attention) text += fmt::format(" ({})", name_of(way));
  if (distributed.threads) text += fmt::format(" of {}", counted(*distributed.threads, "thread"));
  return text;
}

Size bytes_too_many(const Candidate& one, const Machine& machine) {
  const Size threads = one.config.training.distributed.threads.value_or(0);
  return one.memory_bytes - machine.of_threads(threads).memory_bytes;
}

nlohmann::json recomputation_of(const Candidate& one) {
  return setting_of("training.activation_checkpointing").get(one.config);
}

Cells cells_of(const Candidate& one) {
  const TrainingConfig& training = one.config.training;
  return {std::string(name_of(training.distributed.strategy)), mesh_of(one),
          std::to_string(training.microbatches), recomputation_of(one).get<std::string>(),
          human_bytes(one.memory_bytes)};
}

std::string line(std::string_view step, const Cells& cells, std::size_t mesh_width,
                 const std::string& rest) {
  const auto& [strategy, mesh, microbatches, recomputation, memory] = cells;
  return fmt::format("{:>9}  {:<8} {:<{}} {:>12}  {:<9}  {:>10} {}\n", step, strategy, mesh,
                     mesh_width, microbatches, recomputation, memory, rest);
}

/// Says that seconds are not those of Tessera, and what the other program does in another way.
std::string software_text(const Machine& machine) {
  const nlohmann::json own = to_json(Software{}), facts = to_json(machine.software);
  std::vector<std::string> differences;
  for (const auto& [key, value] : facts.items())
    if (value != own[key])
      differences.push_back(fmt::format("{} = {}", key, value.get<std::string>()));
  if (differences.empty()) return "";
  return "Seconds of another program than Tessera: " + join(differences) + "\n";
}

nlohmann::json json_of(const Candidate& one) {
  const TrainingConfig& training = one.config.training;
  return {{"strategy", name_of(training.distributed.strategy)},
          {"mesh", one.mesh.to_string()},
          {"context_attention", name_of(training.distributed.context_attention)},
          {"threads", training.distributed.threads ? nlohmann::json(*training.distributed.threads)
                                                   : nlohmann::json()},
          {"microbatches", training.microbatches},
          {"activation_checkpointing", recomputation_of(one)},
          {"memory_bytes", one.memory_bytes}};
}

}  // namespace

std::string step_text(const Plan& plan, const Machine& machine, const SimulatedStep& step) {
  const nlohmann::json rates = step_json(plan, machine, step);
  const auto rate = [&](const char* name) {
    const double value = rates[name];
    const bool has_digits = value >= 1000 && value < 1e15;
    return has_digits ? with_thousands(std::llround(value)) : fmt::format("{:.3g}", value);
  };
  std::string text = fmt::format(
      "\nPredicted for machine {}: {} per step, {} samples/s{}\n", machine.name,
      human_seconds(step.step_seconds), rate("samples_per_second"),
      rates.contains("tokens_per_second") ? fmt::format(", {} tokens/s", rate("tokens_per_second"))
                                          : "");
  text += human_flops(rates["flops_per_second"]) + " per rank: MFU ";
  if (const auto peak = peak_rate(machine, plan.input))
    text += fmt::format("{:.1f} % of the vendor's {}, ", 100 * rates["mfu_of_peak"].get<double>(),
                        human_flops(*peak));
  text += fmt::format("{:.1f} % of the {} that products reach\n", 100 * rates["mfu"].get<double>(),
                      human_flops(product_rate(machine, plan.input)));
  text += software_text(machine);
  for (const auto& [part, seconds] : step.parts()) {
    if (seconds == 0) continue;
    text += fmt::format("  {:<36} {:>10} {:>5.1f} %", part, human_seconds(seconds),
                        100 * seconds / step.step_seconds);
    for (const SimulatedStep::Call& call : step.calls)
      if (call.name() == part)
        text += fmt::format("  {:.6g} x {}", call.calls, human_seconds(call.lasting / call.calls));
    text += "\n";
  }
  return text;
}

nlohmann::json step_json(const Plan& plan, const Machine& machine, const SimulatedStep& step) {
  nlohmann::json all = to_json(machine, step);
  const double samples = static_cast<double>(plan.input.batch_size) / step.step_seconds;
  const double flops =
      plan.flops.total() / (step.step_seconds * static_cast<double>(plan.input.mesh.num_ranks()));
  all["samples_per_second"] = samples;
  if (plan.input.model.classes > 0)
    all["tokens_per_second"] = samples * static_cast<double>(plan.input.model.input_positions);
  all["flops_per_second"] = flops;
  all["mfu"] = flops / product_rate(machine, plan.input);
  if (const auto peak = peak_rate(machine, plan.input)) all["mfu_of_peak"] = flops / *peak;
  all["software"] = to_json(machine.software);
  all["calls"] = nlohmann::json::array();
  for (const SimulatedStep::Call& call : step.calls)
    if (call.calls > 0)
      all["calls"].push_back({{"axis", call.axis},
                              {"operation", name_of(call.operation)},
                              {"calls", call.calls},
                              {"seconds_of_call", call.lasting / call.calls},
                              {"exposed_seconds", call.seconds},
                              {"waiting_seconds", call.waiting}});
  return all;
}

nlohmann::json to_json(const Machine& machine, const SimulatedStep& step) {
  return {{"machine", machine.name},
          {"step_seconds", step.step_seconds},
          {"product_seconds", step.products.work},
          {"kernel_seconds", step.kernels.work},
          {"optimizer_seconds", step.update.work},
          {"launch_seconds", step.launches()},
          {"communication_seconds", step.communication()},
          {"waiting_seconds", step.waiting()}};
}

std::string memory_text(const Machine& machine, Size needed) {
  if (needed <= machine.memory_bytes)
    return fmt::format("Memory: {} of the {} of a rank of machine {}\n", human_bytes(needed),
                       human_bytes(machine.memory_bytes), machine.name);
  return fmt::format("Memory: does not fit; a rank needs {} more than the {} of machine {}\n",
                     human_bytes(needed - machine.memory_bytes), human_bytes(machine.memory_bytes),
                     machine.name);
}

std::string progress_text(const SearchState& state) {
  const std::string planned =
      fmt::format("{} of {} candidates planned", with_thousands(state.planned),
                  with_thousands(state.candidates));
  if (state.best == nullptr) return planned + ", none fits yet";
  const auto& [strategy, mesh, microbatches, recomputation, memory] = cells_of(*state.best);
  return fmt::format("{}; best so far {}: {} on {}, microbatches {}, recompute {}", planned,
                     human_seconds(state.best->step.step_seconds), strategy, mesh, microbatches,
                     recomputation);
}

std::string advice_text(const Advice& advice, const Machine& machine) {
  std::string text = fmt::format(
      "{} on machine {}, where a rank has {}\n{} of {} candidates were planned; the others {}\n",
      advice.fits.empty() ? "Nothing fits" : "The fastest configurations", machine.name,
      human_bytes(machine.memory_bytes), with_thousands(advice.planned),
      with_thousands(advice.candidates),
      advice.fits.empty() ? "need more memory" : "cannot be faster, or do not fit either");
  text += software_text(machine);
  const auto& best = advice.fits;
  const auto too_large = first(advice.too_large, shown_too_large);
  std::size_t width = 4;
  for (const auto& list : {std::span(best), too_large})
    for (const Candidate& one : list) width = std::max(width, mesh_of(one).size());
  const auto behind = [](const std::string& sent, const std::string& slower) {
    return fmt::format("{:>11}  {}", sent, slower);
  };
  if (!best.empty())
    text += "\n" + line("step", head, width, behind("sent/step", "slower than the best by"));
  for (const Candidate& one : best)
    text += line(human_seconds(one.step.step_seconds), cells_of(one), width,
                 behind(human_bytes(one.sent_bytes), why_slower(one.step, best.front().step)));
  if (!too_large.empty()) text += "\nToo large:\n" + line("", head, width, " by");
  for (const Candidate& one : too_large)
    text += line("", cells_of(one), width, " " + human_bytes(bytes_too_many(one, machine)));
  return text;
}

nlohmann::json advice_json(const Advice& advice, const Machine& machine) {
  nlohmann::json best = nlohmann::json::array(), too_large = best;
  for (const Candidate& one : advice.fits) {
    best.push_back(json_of(one));
    best.back()["sent_bytes"] = one.sent_bytes;
    best.back()["step"] = to_json(machine, one.step);
    best.back()["slower_by"] = why_slower(one.step, advice.fits.front().step);
  }
  for (const Candidate& one : first(advice.too_large, shown_too_large)) {
    too_large.push_back(json_of(one));
    too_large.back()["exceeds_by_bytes"] = bytes_too_many(one, machine);
  }
  return {{"machine", machine.name},
          {"memory_bytes", machine.memory_bytes},
          {"candidates", advice.candidates},
          {"planned", advice.planned},
          {"best", best},
          {"too_large", too_large}};
}

}  // namespace tessera
