// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/app/commands.hpp>
#include <tessera/app/export.hpp>
#include <tessera/app/result_file.hpp>
#include <tessera/app/resumption.hpp>
#include <tessera/app/run_report.hpp>
#include <tessera/app/stop_time.hpp>
#include <tessera/app/validation_text.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/base/stop_signals.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/mesh/mesh_layout.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

/// Collective: what differs from the plan on the lowest rank where anything does; empty if nothing.
std::string violation_on_any_rank(const Communicator& world, const TrainingMetrics& metrics) {
  const Outcome outcome = outcome_of([&] {
    collectively(world, [&] {
      const std::string mine = plan_violation(metrics);
      if (!mine.empty()) throw Error(ExitCode::wrong_result, mine);
    });
  });
  if (outcome.failed() && outcome.code != ExitCode::wrong_result)
    throw Error(outcome.code, outcome.message);
  return outcome.message;
}

nlohmann::json result_document(const Config& config, const TrainingMetrics& metrics,
                               const std::string& violation, const nlohmann::json& provenance,
                               const std::vector<nlohmann::json>& ranks) {
  nlohmann::json document = results_json(metrics);
  document["schema_version"] = 1;
  document["as_planned"] = violation.empty();
  if (!metrics.validations.empty()) document["validation"] = validation_json(config, metrics);
  document["config"] = config_as_json(config);
  document["parameters"] = make_model(config.model).num_parameters();
  document["provenance"] = provenance;
  if (const auto products = short_products(compute_type(config), config.model.matmul_precision))
    document["provenance"]["products"] = name_of(*products);
  document["provenance"]["placement"] = placement_json(ranks);
  return document;
}

/// Stops at a time, and on the signals that schedulers send, if there is where to save.
std::function<bool()> stop_condition(const std::optional<StopSignals>& signals,
                                     std::optional<std::int64_t> until) {
  return [&signals, until] {
    return (signals && signals->arrived()) || (until && seconds_now() >= *until);
  };
}

template <class T>
ExitCode train(Runtime& runtime, const Config& config, const TrainOptions& options,
               const std::string& resume_from) {
  const bool speaks = runtime.world_rank() == 0 && !options.quiet;
  std::optional<StopSignals> signals;
  if (config.checkpoint.enabled()) signals.emplace();
  Trainer<T> trainer(config.model, config.training, config.comm,
                     {.config = config.checkpoint,
                      .wants_to_stop = stop_condition(signals, time_to_stop(options.until, config)),
                      .provenance = collect_provenance(runtime)});
  if (!resume_from.empty()) trainer.resume(resume_from);
  const MeshShape& mesh = trainer.mesh().shape();
  const Communicator& world = trainer.mesh().world();
  const Topology& topology = trainer.topology();
  const nlohmann::json provenance =
      collect_provenance(runtime, message_library(world.backend()), nodes_text(topology));
  collectively(world, [&] {
    if (speaks)
      print_output(opening_text(config, mesh, topology, provenance.at("kokkos").at("backend")));
  });

  TrainingMetrics metrics;
  {
    ProgressLine progress(speaks && progress_is_visible());
    metrics = trainer.fit(config.data, [&](Size epoch, double loss) {
      if (progress.due())
        progress.update(
            fmt::format("epoch {}/{}  loss {:.6f}", epoch, config.training.num_epochs, loss));
    });
  }
  const std::string violation = violation_on_any_rank(world, metrics);
  // What cannot be printed may still be written to the file.
  const Outcome printed = outcome_of([&] {
    if (!speaks) return;
    print_output(metrics.epoch_losses.empty()
                     ? stopped_text(config, metrics)
                     : results_text(config, metrics, mesh, violation.empty()));
  });
  const std::vector<nlohmann::json> ranks = gather_json(world, collect_rank_provenance(runtime));
  collectively(world, [&] {
    if (world.rank() != 0 || (options.json.empty() && options.export_to.empty())) return;
    nlohmann::json document = result_document(config, metrics, violation, provenance, ranks);
    document["nodes"] = nodes_json(topology, mesh);
    if (!options.json.empty()) write_json(options.json, document);
    if (!options.export_to.empty())
      write_json(std::filesystem::path(options.export_to) / "results.json", document);
  });
  if (!options.export_to.empty()) export_predictions(options.export_to, trainer, config.data);
  raise_first_failure(world, printed, Site::current());
  if (!violation.empty()) throw Error(ExitCode::wrong_result, violation);
  if (!metrics.end_not_saved.empty()) throw Error(ExitCode::usage, metrics.end_not_saved);
  return metrics.stopped ? ExitCode::stopped : ExitCode::ok;
}

}  // namespace

ExitCode run_command(Runtime& runtime, const TrainOptions& options) {
  const Config config = agreed_config(Communicator::world(), options.source);
  const Communicator world = Communicator::world(config.comm);
  collectively(world, [&] {
    if (world.rank() != 0) return;
    if (!options.json.empty()) check_writable("--json", options.json);
    if (!options.export_to.empty()) check_export(options.export_to);
  });
  if (options.print_config) {
    if (runtime.world_rank() == 0) print_output(config_as_toml(config));
    return ExitCode::ok;
  }
  collectively(
      world, [&] { row_of(config.data.kind).check_files(config.data, make_model(config.model)); });
  time_to_stop(options.until, config);  // wrong on all ranks, or on none
  const std::string resume_from = checkpoint_to_resume(world, config, options);
  return with_compute_type(compute_type(config), [&](auto t) {
    return train<decltype(t)>(runtime, config, options, resume_from);
  });
}

}  // namespace tessera
