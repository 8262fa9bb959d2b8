// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/app/run_report.hpp>
#include <tessera/base/clock_text.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/tensor/mesh_layout.hpp>

namespace tessera {
namespace {

const std::string rule(60, '=');

struct CountedBytes {
  const char* what;
  Size RankCosts::*bytes;
};
constexpr CountedBytes counted_bytes[] = {
    {"checkpoint read", &RankCosts::checkpoint_bytes_read},
    {"checkpoints written", &RankCosts::checkpoint_bytes_written},
    {"peak memory", &RankCosts::device_bytes}};

/// Returns lines like "data all_reduce  180 calls, 247,680 B  180 calls, 247,680 B": planned,
/// measured.
std::string comparison_text(const TrainingMetrics& metrics) {
  const auto line = [](std::string_view what, std::string_view planned, std::string_view measured) {
    return fmt::format("  {:<26} {:>24} {:>24}\n", what, planned, measured);
  };
  const auto calls = [](const LedgerRow& row) {
    return fmt::format("{} calls, {} B", with_thousands(row.calls),
                       with_thousands(row.payload_bytes));
  };
  std::map<std::pair<std::string, Operation>, std::pair<LedgerRow, LedgerRow>> rows;
  for (const LedgerRow& row : metrics.planned.traffic) rows[{row.axis, row.operation}].first = row;
  for (const LedgerRow& row : metrics.measured.traffic)
    rows[{row.axis, row.operation}].second = row;
  std::string out = line("On this rank", "planned", "measured");
  for (const auto& [key, row] : rows)
    out += line(fmt::format("{} {}", key.first, name_of(key.second)), calls(row.first),
                calls(row.second));
  for (const auto& [what, bytes] : counted_bytes)
    if (metrics.planned.*bytes != 0 || metrics.measured.*bytes != 0)
      out += line(what, with_thousands(metrics.planned.*bytes) + " B",
                  with_thousands(metrics.measured.*bytes) + " B");
  return out;
}

nlohmann::json costs_json(const RankCosts& costs) {
  return {{"traffic", costs.traffic},
          {"checkpoint_bytes_read", costs.checkpoint_bytes_read},
          {"checkpoint_bytes_written", costs.checkpoint_bytes_written},
          {"device_bytes", costs.device_bytes}};
}

std::string traffic_text(const std::vector<LedgerRow>& rows) {
  std::string text;
  for (const LedgerRow& row : rows)
    text += fmt::format("{}{} {}: {} calls, {} B", text.empty() ? "" : "; ", row.axis,
                        name_of(row.operation), with_thousands(row.calls),
                        with_thousands(row.payload_bytes));
  return text.empty() ? "none" : text;
}

/// Returns "(256, 4)", or "(256, 31, 1)" if a sample has several positions.
std::string data_shape(Size samples, Size positions, Size columns) {
  return to_string(positions == 1 ? Shape{samples, columns} : Shape{samples, positions, columns});
}

std::string precision_text(const Config& config) {
  const MatmulPrecision precision = config.model.matmul_precision;
  const auto products = half_products(config);
  if (!products) return "";
  return fmt::format("Precision:    {} (products: {})\n",
                     precision == MatmulPrecision::tf32
                         ? name_of(precision)
                         : name_of(config.training.distributed.mixed_precision),
                     name_of(*products));
}

/// Returns the parts of the speed that are known.
std::string speed_text(const Speed& speed) {
  const auto whole = [](double rate) { return with_thousands(static_cast<Size>(rate)); };
  std::string text = fmt::format("{}/step  {} samples/s", human_seconds(speed.seconds_per_step),
                                 whole(speed.samples_per_second));
  if (speed.tokens_per_second)
    text += fmt::format("  {} tokens/s", whole(*speed.tokens_per_second));
  text += "  " + human_flops(speed.flops_per_second);
  if (speed.mfu) text += fmt::format(" (MFU {:.2g} %)", 100 * *speed.mfu);
  return text;
}

/// Labels a loss that is no result of a training.
std::string note_on_losses(const Config& config) {
  return config.comm.fake ? " (meaningless)" : "";
}

/// Returns the last line: why the run ended.
std::string closing_text(const Config& config, const TrainingMetrics& metrics) {
  if (metrics.stopped)
    return fmt::format("Stopped on request after {} and {} of {} epochs; {}\n",
                       counted(metrics.resumed_at + metrics.steps, "step"),
                       metrics.epoch_losses.size(), config.training.num_epochs,
                       metrics.last_checkpoint.empty()
                           ? "there is no new checkpoint to resume from"
                           : "resume with --resume " + metrics.last_checkpoint);
  if (metrics.stopped_early)
    return fmt::format(
        "Stopped early after {} of {} epochs: {} in a row had no new smallest loss.\n",
        metrics.epoch_losses.size(), config.training.num_epochs,
        counted(config.training.patience, "validation"));
  if (metrics.steps == 0)
    return "Nothing was left to train: the checkpoint is that of the last epoch.\n";
  return "Distributed training complete!\n";
}

/// Returns "3 in 12 ms and 480 ms in the background, the last one is
/// saves/step_0000000040.safetensors".
std::string checkpoints_text(const TrainingMetrics& metrics) {
  const double hidden = metrics.checkpoint_hidden_seconds;
  return fmt::format("{} in {}{}, the last one is {}", metrics.checkpoints,
                     human_seconds(metrics.checkpoint_seconds),
                     hidden > 0 ? " and " + human_seconds(hidden) + " in the background" : "",
                     metrics.last_checkpoint);
}

}  // namespace

std::string opening_text(const Config& config, const MeshShape& mesh, const Topology& topology,
                         const std::string& backend) {
  const ModelSpec model = make_model(config.model);
  const Strategy strategy = config.training.distributed.strategy;
  return fmt::format(
      "{0}\nDistributed {9}Training\n{0}\n"
      "Kokkos backend: {1}\n"
      "Devices:      {2}\n{12}"
      "Model parameters: {3}\n"
      "Mesh shape:   {4}\n"
      "Axis names:   {5}\n"
      "Strategy:     {6}\n{10}{11}"
      "Trainer created with distributed config\n"
      "Training data: x={7}, y={8}\n\n"
      "Training...\n",
      rule, backend, mesh.num_ranks(), model.num_parameters(), shape_text(mesh), names_text(mesh),
      name_of(strategy), data_shape(config.data.samples, model.input_positions, model.input_width),
      data_shape(config.data.samples, model.output_positions(), model.target_width()),
      strategy == Strategy::data ? "Data-Parallel " : "", precision_text(config),
      topology.num_nodes() > 1 ? nodes_line(topology, mesh) : "",
      config.comm.fake ? fmt::format("One process:  as rank {}; what others would send is made up, "
                                     "so losses are meaningless\n",
                                     config.comm.fake->rank)
                       : "");
}

std::string results_text(const Config& config, const TrainingMetrics& metrics,
                         const MeshShape& mesh, bool as_planned) {
  const std::string closing = closing_text(config, metrics);
  if (metrics.epoch_losses.empty()) return closing;
  std::string text = fmt::format("\n{0}\nRESULTS\n{0}\n", rule);
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<16} {}\n", label, value);
  };
  line("Devices used:", config.comm.fake ? fmt::format("1, as rank {} of {}",
                                                       config.comm.fake->rank, mesh.num_ranks())
                                         : std::to_string(mesh.num_ranks()));
  line("Initial loss:", fmt::format("{:.6f}{}", metrics.initial_loss(), note_on_losses(config)));
  line("Final loss:", fmt::format("{:.6f}{}{}", metrics.final_loss(),
                                  parts_text(metrics.final_parts), note_on_losses(config)));
  line("Wall time:", human_seconds(metrics.wall_seconds));
  if (metrics.steps == 0) {
    line("Steps:", "none was left");
  } else {
    line("Time per step:", human_seconds(metrics.seconds_per_step()));
    line("Samples/s:", with_thousands(static_cast<Size>(metrics.samples_per_second())));
  }
  line("Memory:", human_bytes(metrics.measured.device_bytes) + " per rank");
  if (metrics.skipped_steps > 0)
    line("Skipped steps:", fmt::format("{} (gradients overflowed; loss scale {:g})",
                                       metrics.skipped_steps, metrics.loss_scale));
  if (!metrics.init_from.empty()) line("Started from:", metrics.init_from);
  if (metrics.resumed_at > 0) line("Resumed at:", fmt::format("step {}", metrics.resumed_at));
  if (metrics.checkpoints > 0) line("Checkpoints:", checkpoints_text(metrics));
  if (!metrics.best_checkpoint.empty()) line("Best checkpoint:", metrics.best_checkpoint);
  if (metrics.failed_checkpoints > 0)
    line("Not written:", counted(metrics.failed_checkpoints, "checkpoint"));
  text += validation_text(config, metrics);
  line("As planned:", as_planned ? "yes: calls, bytes and memory" : "no");
  return fmt::format("{}\n{}{}\n\n{}", text, comparison_text(metrics), rule, closing);
}

std::string parts_text(const std::vector<NamedNumber>& parts) {
  std::vector<std::string> texts;
  for (const auto& [name, part] : parts) texts.push_back(fmt::format("{} {:.4g}", name, part));
  return texts.empty() ? "" : fmt::format(" ({})", join(texts));
}

std::string training_line(const TrainingProgress& progress) {
  const StepReport& report = progress.report;
  return fmt::format(
      "step {}/{} ({} left)  epoch {}/{}  loss {:.6g}{}  gradient {:.3g}  lr {:.3g}  {}  {}",
      with_thousands(report.step), with_thousands(progress.steps),
      clock_text(progress.seconds_left), with_thousands(progress.epoch),
      with_thousands(progress.epochs), report.loss(), parts_text(progress.loss_parts),
      report.gradient_norm, report.learning_rate, speed_text(progress.speed),
      human_bytes(progress.device_bytes));
}

nlohmann::json results_json(const TrainingMetrics& metrics) {
  nlohmann::json parts = nlohmann::json::object();
  for (const auto& [name, part] : metrics.final_parts) parts[std::string(name)] = part;
  return {{"initial_loss", metrics.initial_loss()},
          {"final_loss", metrics.final_loss()},
          {"final_loss_parts", parts},
          {"epoch_losses", metrics.epoch_losses},
          {"steps", metrics.steps},
          {"samples", metrics.samples},
          {"wall_seconds", metrics.wall_seconds},
          {"stepping_seconds", metrics.stepping_seconds},
          {"seconds_per_step", metrics.seconds_per_step()},
          {"samples_per_second", metrics.samples_per_second()},
          {"loss_scale", metrics.loss_scale},
          {"skipped_steps", metrics.skipped_steps},
          {"stopped", metrics.stopped},
          {"stopped_early", metrics.stopped_early},
          {"resumed_at", metrics.resumed_at},
          {"init_from", metrics.init_from},
          {"checkpoints", metrics.checkpoints},
          {"failed_checkpoints", metrics.failed_checkpoints},
          {"checkpoint_seconds", metrics.checkpoint_seconds},
          {"checkpoint_wait_seconds", metrics.checkpoint_wait_seconds},
          {"checkpoint_hidden_seconds", metrics.checkpoint_hidden_seconds},
          {"last_checkpoint", metrics.last_checkpoint},
          {"best_checkpoint", metrics.best_checkpoint},
          {"planned", costs_json(metrics.planned)},
          {"measured", costs_json(metrics.measured)}};
}

std::string plan_violation(const TrainingMetrics& metrics) {
  if (metrics.measured.traffic != metrics.planned.traffic)
    return fmt::format("measured traffic ({}) differs from the plan ({})",
                       traffic_text(metrics.measured.traffic),
                       traffic_text(metrics.planned.traffic));
  for (const auto& [what, bytes] : counted_bytes)
    if (metrics.measured.*bytes != metrics.planned.*bytes)
      return fmt::format("{}: {} B were measured, but {} B were planned", what,
                         metrics.measured.*bytes, metrics.planned.*bytes);
  return "";
}

}  // namespace tessera
