// SPDX-License-Identifier: Apache-2.0
// tessera-smoke: how fast the tutorial and a large step are on one rank and on all of them, as a
// table with goals and ratios from one run.
#include <cstdio>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/base/log.hpp>
#include <tessera/base/run_main.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_io.hpp>

#include "cli/reduce_case.hpp"
#include "cli/smoke_table.hpp"
#include "cli/step_case.hpp"
#include "cli/strategy_rows.hpp"
#include "measure/measure.hpp"
#include "run/sleeping.hpp"

namespace tessera::bench {
namespace {

struct Options {
  std::string inputs = "inputs";
  std::vector<std::string> overrides;  ///< of the large step; its goals then do not apply
  Size steps = 30;
  Size square = 2048;  ///< size of the product that stands for the machine's peak
  Size reduce_mb = 100;
};

struct Goals {
  double tutorial = 0;  ///< seconds of all its steps
  double step = 0;
};

/// Known for one rank and for two.
std::optional<Goals> goals(Size ranks) {
  if (ranks == 1) return Goals{5e-3, 0.80};
  if (ranks == 2) return Goals{10e-3, 0.45};
  return std::nullopt;
}

struct Cases {
  Config tutorial;
  Config large;
};

/// Throws ConfigError, the same on every rank, unless both can run on one rank and on `ranks`.
Cases load(const Options& options, Size ranks) {
  const Cases cases{
      load_config({.file = options.inputs + "/tutorial.toml"}),
      load_config({.file = options.inputs + "/large.toml", .overrides = options.overrides})};
  for (const Config* config : {&cases.tutorial, &cases.large})
    for (const Size n : {Size{1}, ranks}) validate_case(*config, n);
  return cases;
}

double gflops(double flops, double seconds) { return flops / seconds / 1e9; }

void tutorial_rows(const Options& options, const Config& config, const Communicator& ranks,
                   std::vector<Row>& rows) {
  Size steps = 0;
  // A new engine each time: what a run of the tutorial sees.
  const Work train = [&] {
    StepCase tutorial(config, ranks);
    steps = config.training.num_epochs * tutorial.plan().steps_per_epoch();
    return tutorial.train();
  };
  const Summary seconds = measure_in_turn(ranks, {5, options.steps}, {train})[0];
  const std::string what = fmt::format("tutorial, {} steps", steps);
  const std::optional<Goals> goal = goals(ranks.size());
  rows.push_back(goal ? time_row(what, ranks.size(), seconds, "goal", goal->tutorial)
                      : time_row(what, ranks.size(), seconds));
}

std::string describe_step(const Plan& plan) {
  std::string widths = std::to_string(plan.input.model.input_width());
  for (const LinearSpec& layer : plan.input.model.layers) widths += "-" + std::to_string(layer.out);
  return fmt::format("step {}, batch {}", widths, plan.input.global_batch);
}

/// Appends the rows of the large step; returns its seconds.
double large_rows(const Options& options, const Config& config, const Communicator& ranks,
                  std::optional<double> one_rank, std::vector<Row>& rows) {
  StepCase large(config, ranks);
  const SquareProduct square(options.square);
  const Plan in_line = with_overlap(large.plan(), false);
  const Plan overlapped = with_overlap(large.plan(), true);
  const Size n = ranks.size();

  std::vector<Work> works = {timed([&] { large.step(in_line); }), timed([&] { large.products(); }),
                             timed([&] { square(); })};
  if (n > 1) works.push_back(timed([&] { large.step(overlapped); }));
  const Size warm_up = std::min<Size>(5, options.steps);
  const std::vector<Summary> seconds = measure_in_turn(ranks, {warm_up, options.steps}, works);
  const Summary &step = seconds[0], &products = seconds[1];

  const bool has_goals = options.overrides.empty() && goals(n).has_value();
  rows.push_back(has_goals ? time_row(describe_step(in_line), n, step, "goal", goals(n)->step)
                           : time_row(describe_step(in_line), n, step));
  if (n > 1) rows.push_back(time_row("  with overlap", n, seconds[3], "without", step.median));
  if (one_rank)
    rows.push_back(number_row("  times faster than one rank", n, *one_rank / step.median, "",
                              "ranks", static_cast<double>(n)));
  rows.push_back(time_row("  its matrix products alone", n, products));
  const double share = 100 * products.median / step.median;
  const bool has_share_goal = has_goals && n == 1;
  rows.push_back(
      number_row("  their share of the step", n, share, "%", has_share_goal ? "goal" : "", 90));
  const double flops = static_cast<double>(in_line.flops.total()) / static_cast<double>(n);
  rows.push_back(number_row("  rate of a rank", n, gflops(flops, step.median), "GFLOP/s", "peak",
                            gflops(static_cast<double>(square.flops()), seconds[2].min)));
  rows.push_back(number_row("  allocations in a warm step", n,
                            static_cast<double>(large.allocations_of_step()), "", "goal", 0));
  return step.median;
}

void reduce_rows(const Options& options, const Communicator& world, Size elements, Size calls,
                 const std::string& size, std::vector<Row>& rows) {
  const ReduceCase reduce(world, elements, calls);
  std::vector<Summary> seconds = measure_in_turn(
      world, {3, options.steps},
      {timed([&] { reduce.through_communicator(); }), timed([&] { reduce.through_mpi(); })});
  for (Summary& s : seconds)
    s = {s.median / static_cast<double>(calls), s.mad / static_cast<double>(calls),
         s.min / static_cast<double>(calls)};
  rows.push_back(
      time_row("all-reduce of " + size, world.size(), seconds[0], "MPI", seconds[1].median));
}

ExitCode smoke(Runtime& runtime, const Options& options) {
  const Communicator world = Communicator::world();
  const Cases cases = load(options, world.size());
  const std::string circumstances =
      circumstances_text(collect_provenance(runtime, nccl_version()),
                         gather_json(world, to_json(collect_rank_provenance(runtime))));

  std::vector<Row> rows;
  std::optional<double> one_rank;
  on_first_rank(world.rank(), [&] {
    const Communicator alone = world.alone("alone");
    tutorial_rows(options, cases.tutorial, alone, rows);
    one_rank = large_rows(options, cases.large, alone, std::nullopt, rows);
  });
  if (world.size() > 1) {
    tutorial_rows(options, cases.tutorial, world, rows);
    large_rows(options, cases.large, world, one_rank, rows);
    strategy_rows(cases.large, world, {std::min<Size>(5, options.steps), options.steps}, rows);
    reduce_rows(options, world, 385, 1000, "385 floats", rows);
    reduce_rows(options, world, options.reduce_mb * 250'000, 1,
                fmt::format("{} MB", options.reduce_mb), rows);
  }
  if (world.rank() != 0) return ExitCode::ok;
  std::printf("%s\n%s", circumstances.c_str(), table_text(rows).c_str());
  if (!runtime.blas().remark.empty()) std::printf("\nhint: %s\n", runtime.blas().remark.c_str());
  return ExitCode::ok;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  using namespace tessera;
  return run_main(argc, argv, [&](Runtime& runtime) {
    bench::Options options;
    CLI::App app("Speed of the tutorial and of a large step, on one rank and on all of them");
    app.add_option("--inputs", options.inputs, "Directory of tutorial.toml and large.toml");
    app.add_option("--set", options.overrides, "Override one key of large.toml")
        ->allow_extra_args(false);
    app.add_option("--steps", options.steps, "Measurements of each kind")
        ->check(CLI::Range(Size{1}, Size{1} << 20));
    app.add_option("--square", options.square, "Rows of the product taken as the peak")
        ->check(CLI::Range(Size{1}, Size{1} << 20));
    app.add_option("--reduce-mb", options.reduce_mb, "Megabytes of the large all-reduce")
        ->check(CLI::Range(Size{1}, Size{1} << 20));
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      if (runtime.world_rank() == 0) std::fputs(app.help().c_str(), stdout);
      return ExitCode::ok;
    } catch (const CLI::ParseError& error) {
      throw Error(ExitCode::usage, error.what());
    }
    return bench::smoke(runtime, options);
  });
}
