// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <tessera/app/run_report.hpp>
#include <tessera/app/validation_text.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/mesh/mesh_layout.hpp>

namespace tessera {
namespace {

const std::string rule(60, '=');

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
  for (const LedgerRow& row : metrics.planned_traffic) rows[{row.axis, row.operation}].first = row;
  for (const LedgerRow& row : metrics.measured_traffic)
    rows[{row.axis, row.operation}].second = row;
  std::string out = line("On this rank", "planned", "measured");
  for (const auto& [key, row] : rows)
    out += line(fmt::format("{} {}", key.first, name_of(key.second)), calls(row.first),
                calls(row.second));
  const auto bytes = [&](const char* what, Size planned, Size measured) {
    if (planned != 0 || measured != 0)
      out += line(what, with_thousands(planned) + " B", with_thousands(measured) + " B");
  };
  bytes("checkpoint read", metrics.planned_read, metrics.measured_read);
  bytes("checkpoints written", metrics.planned_written, metrics.measured_written);
  bytes("peak memory", metrics.planned_bytes, metrics.measured_bytes);
  return out;
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
  const auto products = half_products(compute_type(config), precision);
  if (!products) return "";
  return fmt::format("Precision:    {} (products: {})\n",
                     precision == MatmulPrecision::tf32
                         ? name_of(precision)
                         : name_of(config.training.distributed.mixed_precision),
                     name_of(*products));
}

}  // namespace

std::string opening_text(const Config& config, const MeshShape& mesh, const Topology& topology,
                         const std::string& backend) {
  const ModelSpec model = make_model(config.model);
  const Strategy strategy = config.training.distributed.strategy;
  return fmt::format(
      "{0}\nDistributed {9}Training\n{0}\n"
      "Kokkos backend: {1}\n"
      "Devices:      {2}\n"
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
      topology.num_nodes() > 1 ? nodes_line(topology, mesh) : "");
}

std::string stopped_text(const Config& config, const TrainingMetrics& metrics) {
  if (!metrics.stopped) return "";
  return fmt::format("Stopped on request after {} and {} of {} epochs; {}\n",
                     counted(metrics.resumed_at + metrics.steps, "step"),
                     metrics.epoch_losses.size(), config.training.num_epochs,
                     metrics.last_checkpoint.empty()
                         ? "there is no new checkpoint to resume from"
                         : "resume with --resume " + metrics.last_checkpoint);
}

namespace {

/// Returns "  Checkpoints:     3 in 12 ms and 480 ms in the background, the last one is ...\n".
std::string checkpoints_text(const TrainingMetrics& metrics) {
  std::string out;
  if (metrics.resumed_at > 0)
    out += fmt::format("  Resumed at:      step {}\n", metrics.resumed_at);
  if (metrics.checkpoints > 0)
    out += fmt::format(
        "  Checkpoints:     {} in {}{}, the last one is {}\n", metrics.checkpoints,
        human_seconds(metrics.checkpoint_seconds),
        metrics.checkpoint_hidden_seconds > 0
            ? " and " + human_seconds(metrics.checkpoint_hidden_seconds) + " in the background"
            : "",
        metrics.last_checkpoint);
  if (metrics.failed_checkpoints > 0)
    out +=
        fmt::format("  Not written:     {}\n", counted(metrics.failed_checkpoints, "checkpoint"));
  return out;
}

std::string speed_text(const TrainingMetrics& metrics) {
  if (metrics.steps == 0) return "  Steps:           none was left\n";
  return fmt::format("  Time per step:   {}\n  Samples/s:       {}\n",
                     human_seconds(metrics.seconds_per_step()),
                     with_thousands(static_cast<Size>(metrics.samples_per_second())));
}

std::string closing_text(const Config& config, const TrainingMetrics& metrics) {
  if (metrics.stopped) return std::string(trim(stopped_text(config, metrics)));
  if (metrics.steps == 0)
    return "Nothing was left to train: the checkpoint is that of the last epoch.";
  return "Distributed training complete!";
}

}  // namespace

std::string results_text(const Config& config, const TrainingMetrics& metrics,
                         const MeshShape& mesh, bool as_planned) {
  return fmt::format(
      "\n{0}\nRESULTS\n{0}\n"
      "  Devices used:    {1}\n"
      "  Initial loss:    {2:.6f}\n"
      "  Final loss:      {3:.6f}\n"
      "  Wall time:       {4}\n"
      "{5}"
      "  Memory:          {6} per rank\n{9}{11}{10}"
      "  As planned:      {7}\n\n"
      "{8}{0}\n\n{12}\n",
      rule, mesh.num_ranks(), metrics.initial_loss(), metrics.final_loss(),
      human_seconds(metrics.wall_seconds), speed_text(metrics), human_bytes(metrics.measured_bytes),
      as_planned ? "yes: calls, bytes and memory" : "no", comparison_text(metrics),
      metrics.skipped_steps == 0
          ? ""
          : fmt::format("  Skipped steps:   {} (gradients overflowed; loss scale {:g})\n",
                        metrics.skipped_steps, metrics.loss_scale),
      validation_text(config, metrics), checkpoints_text(metrics), closing_text(config, metrics));
}

nlohmann::json results_json(const TrainingMetrics& metrics) {
  return {{"initial_loss", metrics.initial_loss()},
          {"final_loss", metrics.final_loss()},
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
          {"resumed_at", metrics.resumed_at},
          {"checkpoints", metrics.checkpoints},
          {"failed_checkpoints", metrics.failed_checkpoints},
          {"checkpoint_seconds", metrics.checkpoint_seconds},
          {"checkpoint_wait_seconds", metrics.checkpoint_wait_seconds},
          {"checkpoint_hidden_seconds", metrics.checkpoint_hidden_seconds},
          {"last_checkpoint", metrics.last_checkpoint},
          {"planned",
           {{"traffic", metrics.planned_traffic},
            {"checkpoint_bytes_read", metrics.planned_read},
            {"checkpoint_bytes_written", metrics.planned_written},
            {"device_bytes", metrics.planned_bytes}}},
          {"measured",
           {{"traffic", metrics.measured_traffic},
            {"checkpoint_bytes_read", metrics.measured_read},
            {"checkpoint_bytes_written", metrics.measured_written},
            {"device_bytes", metrics.measured_bytes}}}};
}

std::string plan_violation(const TrainingMetrics& metrics) {
  if (metrics.measured_traffic != metrics.planned_traffic)
    return fmt::format("measured traffic ({}) differs from the plan ({})",
                       traffic_text(metrics.measured_traffic),
                       traffic_text(metrics.planned_traffic));
  const std::tuple<const char*, Size, Size> bytes[] = {
      {"peak device memory", metrics.measured_bytes, metrics.planned_bytes},
      {"bytes read from a checkpoint", metrics.measured_read, metrics.planned_read},
      {"bytes written to checkpoints", metrics.measured_written, metrics.planned_written}};
  for (const auto& [what, measured, planned] : bytes)
    if (measured != planned)
      return fmt::format("{}: {} B were measured, but {} B were planned", what, measured, planned);
  return "";
}

}  // namespace tessera
