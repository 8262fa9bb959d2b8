// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/app/commands.hpp>
#include <tessera/app/export.hpp>
#include <tessera/app/run_report.hpp>
#include <tessera/app/run_trace.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/process/stop_signals.hpp>
#include <tessera/tensor/mesh_layout.hpp>
#include <tessera/train/config_files.hpp>
#include <tessera/train/metrics_log.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

/// Returns the plan_violation() of the lowest rank that has one, or "". Collective.
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
  if (config.comm.fake)
    document["as_rank"] = config.comm.fake->rank, document["losses_are_meaningless"] = true;
  if (!metrics.validations.empty()) document["validation"] = validation_json(config, metrics);
  document["config"] = config_as_json(config);
  document["parameters"] = make_model(config.model).num_parameters();
  document["provenance"] = provenance;
  if (const auto products = half_products(config))
    document["provenance"]["products"] = name_of(*products);
  document["provenance"]["placement"] = placement_json(ranks);
  return document;
}

/// Writes outputs one by one. If one fails, the others are written nevertheless.
class Attempts {
 public:
  explicit Attempts(const Communicator& world) : world_(world) {}

  /// `attempt` is collective and has the same outcome on all ranks.
  void make(const std::function<void()>& attempt) {
    const Outcome outcome = outcome_of(attempt);
    if (outcome.failed() && outcome.code != ExitCode::usage)
      throw Error(outcome.code, outcome.message);
    if (!first_failure_.failed()) first_failure_ = outcome;
  }
  /// Runs `attempt` on rank 0; all ranks get its error. Collective.
  void make_on_first(const std::function<void()>& attempt) {
    make([&] {
      collectively(world_, [&] {
        if (world_.is_first()) attempt();
      });
    });
  }
  /// Throws the first error.
  void conclude() const {
    if (first_failure_.failed()) throw Error(first_failure_.code, first_failure_.message);
  }

 private:
  const Communicator& world_;
  Outcome first_failure_{};
};

template <class T>
ExitCode train(Runtime& runtime, const Config& config, const TrainOptions& options,
               const std::string& resume_from, std::optional<double> peak) {
  std::optional<StopSignals> signals;
  if (config.checkpoint.enabled()) signals.emplace();
  const auto wants_to_stop = [&signals, until = options.until] {
    return (signals && signals->arrived()) || (until && std::time(nullptr) >= *until);
  };
  Reporting reporting{.output = config.output, .peak = peak};
  if (!options.quiet || !options.progress.empty())
    reporting.line = [is_fake = config.comm.fake.has_value()](const TrainingProgress& progress) {
      return training_line(progress) + (is_fake ? "  (losses are meaningless)" : "");
    };
  Trainer<T> trainer(config.model, config.training, config.comm,
                     {.config = config.checkpoint,
                      .wants_to_stop = wants_to_stop,
                      .provenance = collect_provenance(runtime)},
                     reporting);
  if (!resume_from.empty()) trainer.resume(resume_from);
  const MeshShape& mesh = trainer.mesh().shape();
  const Communicator& world = trainer.mesh().world();
  const Topology& topology = trainer.topology();
  const nlohmann::json provenance =
      collect_provenance(runtime, message_library(world.backend()), nodes_text(topology));
  Attempts output(world);
  if (!options.quiet)
    output.make_on_first([&] {
      print_output(opening_text(config, mesh, topology, provenance.at("kokkos").at("backend")));
    });
  // Standard output is the only place for the results.
  if (options.json.empty() && options.export_to.empty() && !config.checkpoint.enabled())
    output.conclude();

  std::optional<RunTrace> trace;
  const auto write_trace = [&] {
    if (trace)
      output.make([&] { trace->write(trainer.engine().plan(), trainer.measured_bytes()); });
  };
  if (!options.trace.empty()) {
    trace.emplace(options.trace, trainer.mesh(), options.trace_steps.first);
    trainer.after_steps(options.trace_steps.first - 1, [&] { trace->begin(); });
    trainer.after_steps(options.trace_steps.second, write_trace);
  }
  TrainingMetrics metrics;
  try {
    metrics = trainer.fit(config.data);
  } catch (const Error& error) {
    if (error.code() == ExitCode::wrong_result) write_trace();  // all ranks are here
    throw;
  }
  write_trace();
  const std::string violation = violation_on_any_rank(world, metrics);
  const std::vector<nlohmann::json> ranks = gather_json(world, collect_rank_provenance(runtime));
  const auto write_results = [&](const std::filesystem::path& file) {
    output.make_on_first([&] {
      nlohmann::json document = result_document(config, metrics, violation, provenance, ranks);
      document["nodes"] = nodes_json(topology, mesh);
      write_json(file, document);
    });
  };
  // Files come first, because standard output may be a pipe whose reader blocks.
  if (!options.json.empty()) write_results(options.json);
  if (!options.export_to.empty()) {
    const std::filesystem::path directory = options.export_to;
    write_results(directory / "results.json");
    const Activity activity("writing samples and predictions");
    output.make([&] { export_predictions(directory, trainer, config.data); });
  }
  if (!options.quiet)
    output.make_on_first(
        [&] { print_output(results_text(config, metrics, mesh, violation.empty())); });
  output.make_on_first([&] {
    if (!metrics.metrics_not_written.empty())
      throw Error(ExitCode::usage, metrics.metrics_not_written);
  });
  output.conclude();
  if (!violation.empty()) throw Error(ExitCode::wrong_result, violation);
  if (!metrics.end_not_saved.empty()) throw Error(ExitCode::usage, metrics.end_not_saved);
  return metrics.stopped ? ExitCode::stopped : ExitCode::ok;
}

/// Returns the checkpoint to resume from, or "" to start anew. Rank 0 looks for it. Throws the same
/// Error on every rank if --resume finds none, and for a file from which the run cannot resume or
/// start. Collective.
std::string checkpoint_to_resume(const Communicator& world, const Config& config,
                                 const TrainOptions& options) {
  const std::string path = collectively(world, [&]() -> std::string {
    if (!options.resume && !options.resume_if_present) return "";
    if (options.resume && !options.resume->empty()) return *options.resume;
    if (!config.checkpoint.enabled())
      throw Error(ExitCode::usage, "{}: needs checkpoint.directory",
                  options.resume ? "--resume" : "--resume-if-present");
    if (world.rank() != 0) return "";
    const auto latest = checkpoint_to_continue(config, options.resume.has_value());
    return latest ? latest->string() : "";
  });
  const std::string agreed = broadcast_json(world, path);
  // Rejects a wrong file before anything is printed. fit() reads it again.
  if (!agreed.empty())
    state_to_resume(agreed, world, config,
                    agreed_checksums(world, config.data, make_model(config)));
  else if (const std::string& weights = config.checkpoint.init_from; !weights.empty())
    const InitialWeights checked(weights, world, config);
  return agreed;
}

/// Checks all files that the run reads and writes. Throws ConfigError if two of them are one file,
/// or if an output cannot be written.
void check_files_of_run(const Config& config, const TrainOptions& options) {
  std::vector<FileUse> files{{"configuration", options.source.file},
                             {"--machine", options.machine},
                             {"--json", options.json, true},
                             {"--trace", options.trace, true}};
  const auto add = [&](const std::vector<FileUse>& more) {
    files.insert(files.end(), more.begin(), more.end());
  };
  add(outputs_of(config));
  if (!options.export_to.empty()) add(exported_files(options.export_to));
  const std::vector<FileUse> inputs = inputs_of(config);
  add(inputs);
  // Checkpoints to start from may be in checkpoint.directory, where a run replaces none of them.
  std::erase_if(files, [](const FileUse& use) { return use.key == "checkpoint.init_from"; });
  check_distinct(files);
  std::erase_if(files, [](const FileUse& use) { return use.owns != nullptr; });
  files.push_back({"--resume", options.resume.value_or("")});
  add(inputs);
  check_distinct(files);
  for (const FileUse& use : files)
    if (use.writes && !use.path.empty() && use.key != "--export") check_writable(use.key, use.path);
  check_appendable(config.output);
  if (!options.export_to.empty()) check_export(options.export_to);
}

}  // namespace

ExitCode run_command(Runtime& runtime, const TrainOptions& options) {
  const Config config = agreed_config(Communicator::world(), options.source);
  const Communicator world = Communicator::world(config.comm);
  collectively(world, [&] {
    if (world.is_first()) check_files_of_run(config, options);
  });
  if (options.print_config) {
    if (runtime.world_rank() == 0) print_output(config_as_toml(config));
    return ExitCode::ok;
  }
  const Topology topology = topology_of(world, config);
  const std::optional<double> peak = collectively(world, [&] {
    const bool hides_lines = options.quiet && options.progress.empty();
    if (!options.machine.empty() && hides_lines && !config.output.enabled())
      throw Error(ExitCode::usage,
                  "--machine adds the MFU to progress lines, output.metrics and "
                  "output.tensorboard; --quiet turns off the lines, and neither key is set");
    set_progress_mode(hides_lines ? "none" : options.progress);
    if (options.machine.empty()) return std::optional<double>();
    const PlanInput input = plan_input(config, resolve_mesh(config, topology));
    const Machine machines = load_machine(options.machine);
    const Machine& machine = machines.of_threads(config.training.distributed.threads.value_or(0));
    check_device(machine, input.traits.device);
    return std::optional(product_rate(machine, input));
  });
  collectively(world, [&] { check_files(config.data, make_model(config.model)); });
  if (options.until && !config.checkpoint.enabled())
    throw ConfigError("--until", std::to_string(*options.until), "needs checkpoint.directory");
  const std::string resume_from = checkpoint_to_resume(world, config, options);
  return with_compute_type(compute_type(config), [&](auto t) {
    return train<decltype(t)>(runtime, config, options, resume_from, peak);
  });
}

}  // namespace tessera
