// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <fmt/format.h>

#include <tessera/base/log.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/train/config_io.hpp>
#include <tessera/train/config_rules.hpp>
#include <tessera/train/result_file.hpp>
#include <tessera/train/run_command.hpp>
#include <tessera/train/run_report.hpp>
#include <tessera/train/share_json.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Collective: what differs from the plan on the lowest rank where anything does; empty if nothing.
std::string violation_on_any_rank(const Communicator& world, const TrainingMetrics& metrics) {
  try {
    collectively(world, [&] {
      const std::string mine = plan_violation(metrics);
      if (!mine.empty()) throw Error(ExitCode::wrong_result, mine);
    });
  } catch (const Error& error) {
    if (error.code() != ExitCode::wrong_result) throw;
    return error.what();
  }
  return "";
}

template <class T>
ExitCode train(Runtime& runtime, const Config& config, const RunOptions& options) {
  const bool speaks = runtime.world_rank() == 0 && !options.quiet;
  Trainer<T> trainer(config.model, config.training, config.comm);
  const Communicator& world = trainer.mesh().world();
  const Provenance provenance = collect_provenance(runtime, nccl_version());
  if (speaks) print(opening_text(config, trainer.mesh().shape(), provenance.kokkos_backend));

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
  if (speaks) print(results_text(metrics, trainer.mesh().shape(), violation.empty()));

  const std::vector<nlohmann::json> ranks =
      gather_json(world, to_json(collect_rank_provenance(runtime)));
  collectively(world, [&] {
    if (options.json.empty() || world.rank() != 0) return;
    nlohmann::json document = results_json(metrics);
    document["schema_version"] = 1;
    document["as_planned"] = violation.empty();
    document["config"] = config_as_json(config);
    document["parameters"] = trainer.model().num_parameters();
    document["provenance"] = to_json(provenance);
    document["provenance"]["ranks"] = ranks;
    write_json(options.json, document);
  });
  if (!violation.empty()) throw Error(ExitCode::wrong_result, violation);
  return ExitCode::ok;
}

}  // namespace

ExitCode run_command(Runtime& runtime, const RunOptions& options) {
  Config config;
  // Agreed on: a file may be missing, or a directory read-only, on one node only.
  collectively(Communicator::world(), [&] {
    config = resolve(load_config(options.source), runtime.world_size());
    if (!options.json.empty() && runtime.world_rank() == 0) check_writable("--json", options.json);
  });
  if (options.print_config) {
    if (runtime.world_rank() == 0) print(config_as_toml(config));
    return ExitCode::ok;
  }
  return config.model.dtype == DType::float64 ? train<double>(runtime, config, options)
                                              : train<float>(runtime, config, options);
}

}  // namespace tessera
