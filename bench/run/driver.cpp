// SPDX-License-Identifier: Apache-2.0
#include "run/driver.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/log.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "results/documents.hpp"
#include "results/summary.hpp"
#include "run/attempt.hpp"
#include "run/console.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// A study and its cases.
struct Work {
  Study study;
  std::vector<Case> cases;
};

Work load(const RunOptions& options) {
  Work work;
  work.study = load_study(options.source);
  if (options.seed) work.study.seed = *options.seed;
  work.cases = make_cases(work.study);
  if (options.only) check_id(work.cases, *options.only);
  return work;
}

/// Collective: the file may be missing, or another one, on some nodes.
Work load_agreed(const RunOptions& options) {
  const Communicator world = Communicator::world();
  Work work = collectively(world, [&] { return load(options); });
  const Json mine = study_document(work.study, work.cases);
  const Json first = broadcast_json(world, mine);
  collectively(world, [&] {
    if (mine != first)
      throw Error(ExitCode::usage, fmt::format("rank {} reads a different {} than rank 0",
                                               world.rank(), options.source.file));
  });
  return work;
}

CommOptions comm_options(const Study& study) {
  CommOptions options;
  // A call that takes as long as its case may is stalled; the watchdog can say where.
  const double limit = std::min(study.limits.case_seconds, longest_timeout_seconds);
  const double asked = study.base.comm.timeout_seconds;
  options.timeout_seconds = asked > 0 ? std::min(asked, limit) : limit;
  options.check_collectives = study.base.comm.check_collectives;
  return options;
}

bool may_exist(const RunOptions& options) {
  return options.resume || options.only || !options.retry.empty();
}

/// Rank 0's choice of cases, in the order in which they run; on every rank.
std::vector<std::size_t> choose(const Communicator& world, const Work& work,
                                const RunOptions& options, const ResultsDirectory& results,
                                std::vector<std::size_t>& skipped) {
  Json choice{{"run", Json::array()}, {"skip", Json::array()}};
  collectively(world, [&] {
    if (world.rank() != 0) return;
    results.prepare(study_document(work.study, work.cases), may_exist(options));
    if (!results.has_locks())
      log_warning(fmt::format(
          "{}: this file system has no locks: start one launch at a time; a case that a killed "
          "launch was running can be resumed {:.0f} s after it began",
          results.path().string(), longest_run(work.study.limits.case_seconds)));
    std::vector<std::size_t> run;
    for (const Selected& item :
         select_cases(work.cases, results, options, work.study.limits.case_seconds, world.size())) {
      if (item.what == Selected::What::run) run.push_back(item.index);
      if (item.what == Selected::What::skip) choice["skip"].push_back(item.index);
    }
    choice["run"] = shuffled(std::move(run), work.study.seed);
  });
  choice = broadcast_json(world, choice);
  skipped = choice.at("skip").get<std::vector<std::size_t>>();
  return choice.at("run").get<std::vector<std::size_t>>();
}

std::string describe(const Json& result) {
  if (result.is_null()) return "left to another launch";
  if (result.at("status") == "ok")
    return fmt::format(
        "{} a step, {} samples/s",
        human_seconds(result.at("step_seconds").at("median").get<double>()),
        with_thousands(static_cast<Size>(result.at("samples_per_second").get<double>())));
  return fmt::format("{}: {}", result.at("status").get<std::string>(),
                     result.at("reason").get<std::string>());
}

/// Which case is being run, and how long the others may take.
void show_progress(ProgressLine& progress, std::size_t done, std::size_t all, const Timer& clock,
                   const std::string& id) {
  const double left =
      done == 0 ? 0 : clock.seconds() / static_cast<double>(done) * static_cast<double>(all - done);
  progress.update(fmt::format("{}/{}  {}{}", done + 1, all, id,
                              done == 0 ? "" : fmt::format("  {:.0f} s left", left)));
}

void run_cases(const Work& work, const std::vector<std::size_t>& order,
               const AttemptContext& context) {
  const bool is_first = context.world.rank() == 0;
  ProgressLine progress(is_first && progress_is_visible());
  const Timer clock;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Case& point = work.cases[order[i]];
    if (is_first) show_progress(progress, i, order.size(), clock, point.id);
    const Json result = attempt_case(point, context);
    if (!is_first) continue;
    progress.erase();
    log_note(fmt::format("{}/{}  {}  {}", i + 1, order.size(), point.id, describe(result)));
    write_summary(context.results);
  }
}

/// One case decides by itself where only it was asked for.
void narrow(Json& summary, const std::string& id, const ResultsDirectory& results) {
  Results only = read_results(results);
  std::erase_if(only.cases, [&](const Json& result) { return result.at("id") != id; });
  const Json alone = summarize_study(only);
  for (const char* key : {"result", "exit_code", "counts"}) summary[key] = alone.at(key);
}

ExitCode conclude(const RunOptions& options, const ResultsDirectory& results) {
  Json summary = write_summary(results);
  if (options.only) narrow(summary, *options.only, results);
  print_output(summary_table(summary) + "\n" + figures_of_merit(summary));
  print_result_line(summary.at("result"), result_text(summary) + " in " + results.path().string());
  return exit_code_of(summary);
}

}  // namespace

ExitCode run_study(Runtime& runtime, const RunOptions& options) {
  const Work work = load_agreed(options);
  const ResultsDirectory results(options.directory);
  const Communicator world = Communicator::world(comm_options(work.study));
  std::optional<Fault> fault;
  if (!options.inject.empty()) fault = parse_fault(options.inject);

  std::vector<std::size_t> skipped;
  const std::vector<std::size_t> order = choose(world, work, options, results, skipped);
  std::vector<const Case*> cases;
  std::vector<std::string> ids;
  for (const std::size_t index : order) {
    cases.push_back(&work.cases[index]);
    ids.push_back(work.cases[index].id);
  }
  const LaunchState launch(runtime, work.study, world, cases);
  collectively(world, [&] {
    if (world.rank() != 0) return;
    results.write_launch(launch.document(ids, work.study.seed));
    for (const std::size_t index : skipped)
      results.write_result(work.cases[index].id,
                           skipped_result(work.study, work.cases[index], launch.name()));
  });

  LastWord last_word(results);
  run_cases(work, order, {work.study, world, launch, results, last_word, options, fault});
  int code = 0;
  collectively(world, [&] {
    if (world.rank() == 0) code = static_cast<int>(conclude(options, results));
  });
  return static_cast<ExitCode>(broadcast_json(world, code).get<int>());
}

ExitCode show_selection(const RunOptions& options, Size ranks) {
  const Work work = load(options);
  const ResultsDirectory results(options.directory);
  print_output(selection_list(work.cases, select_cases(work.cases, results, options,
                                                       work.study.limits.case_seconds, ranks)));
  return ExitCode::ok;
}

}  // namespace tessera::bench
