// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include <tessera/base/clock_text.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/standard_streams.hpp>

#include "results/result_parts.hpp"
#include "results/summary.hpp"
#include "run/attempt.hpp"
#include "run/commands.hpp"
#include "run/console.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {

namespace {

using Json = nlohmann::json;

StudyCases load(const RunOptions& options, const std::optional<Topology>& launch) {
  StudyCases work;
  work.study = load_study(options.source);
  if (options.seed) work.study.seed = *options.seed;
  work.cases = make_cases(work.study, launch);
  for (const std::string& id : options.only) check_id(work.cases, id);
  return work;
}

/// The study may describe nodes larger than the launch, whose last node may be partly filled.
void check_launch(DistributedConfig given, const Topology& launch) {
  const std::optional<Size> per_node = given.num_processes_per_node;
  if (per_node && *per_node > 0 &&
      Topology::blocks(launch.ranks(), *per_node).ranks_by_node() == launch.ranks_by_node())
    given.num_processes_per_node.reset();
  check_nodes(given, launch);
}

/// Loads the study on every rank. Throws on all ranks if the file is missing or differs on some
/// nodes. Collective.
StudyCases load_agreed(const RunOptions& options, const Topology& launch) {
  const Communicator world = Communicator::world();
  StudyCases work = collectively(world, [&] {
    StudyCases mine = load(options, launch);
    check_launch(mine.study.base.training.distributed, launch);
    return mine;
  });
  const Json mine = work;
  const Json first = broadcast_json(world, mine);
  collectively(world, [&] {
    if (mine != first)
      throw Error(ExitCode::usage, "rank {} reads a different {} from rank 0", world.rank(),
                  options.source.file);
  });
  return work;
}

/// Collects what the launch offers. Ranks with different numbers of threads count as 0 threads.
/// Collective.
Capacity capacity_of(const Communicator& world, const Topology& topology) {
  const Size threads = Kokkos::num_threads();
  const Json are_equal = conclude_json(world, threads, [](const std::vector<Json>& all) {
    return std::count(all.begin(), all.end(), all.front()) == std::ssize(all);
  });
  return {world.size(), are_equal ? threads : 0, backend_facts(), topology};
}

CommOptions options_of(const Study& study) {
  CommOptions options;
  // The watchdog reports a call that takes as long as a whole case may.
  const double limit = std::min(study.limits.case_seconds, longest_timeout_seconds);
  const double asked = study.base.comm.timeout_seconds;
  options.timeout_seconds = asked > 0 ? std::min(asked, limit) : limit;
  options.check_collectives = study.base.comm.check_collectives;
  return options;
}

bool may_have_results(const RunOptions& options) {
  return options.resume || !options.only.empty() || !options.retry.empty();
}

/// Returns rank 0's decision about each case on every rank. Writes nothing.
std::vector<Selected::What> choose(const Communicator& world, const StudyCases& work,
                                   const RunOptions& options, const ResultsDirectory& results,
                                   const Capacity& capacity) {
  std::vector<Selected::What> choice;
  collectively(world, [&] {
    if (world.rank() != 0) return;
    check_results_apart(work, options.machine, results);
    // Finds damaged files before anything runs.
    if (results.check(work.study, may_have_results(options))) read_results(results);
    for (const Case& point : work.cases)
      choice.push_back(select_case(point, results, options, work.study, capacity).what);
  });
  return broadcast_json(world, choice);
}

/// Writes the first files of a launch, after all its input was checked, so that wrong input leaves
/// the directory as it was. Collective.
void begin_results(const Communicator& world, const StudyCases& work, const RunOptions& options,
                   const ResultsDirectory& results, const std::vector<Selected::What>& choice,
                   const LaunchState& launch) {
  collectively(world, [&] {
    if (world.rank() != 0) return;
    std::vector<CaseResult> documents;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const Case& point = work.cases[i];
      if (choice[i] == Selected::What::skip)
        documents.push_back(skipped_result(work.study, point, launch.name()));
      if (choice[i] == Selected::What::give_up)
        documents.push_back(given_up_result(*results.result(point.id)));
    }
    results.prepare(work, may_have_results(options));
    if (!results.has_locks())
      log_warning(fmt::format(
          "{}: this file system does not support locks: start one launch at a time; a case "
          "that a killed launch was running can be resumed {:.0f} s after it began",
          results.path().string(), longest_run(work.study.limits.case_seconds)));
    launch.write(results);
    for (const CaseResult& document : documents) results.write_result(document);
  });
}

std::string describe(const Attempt& attempt) {
  if (!attempt.is_taken()) return "left to another launch";
  const CaseResult& result = attempt.result();
  if (result.is_measured())
    return fmt::format("{} a step, {} samples/s", human_seconds(result.step_seconds->median),
                       rate(result.samples_per_second));
  return fmt::format("{}: {}", result.status, result.reason);
}

/// Returns the round and the case that run, with an estimate of the time left.
std::string progress_text(const std::string& place, const std::string& id,
                          const TimeLeft& estimate) {
  const std::optional<double> left = estimate.seconds();
  return fmt::format("{}{}  {}", place, left ? fmt::format(" ({} left)", clock_text(*left)) : "",
                     id);
}

/// Chooses the cases that stay set up between rounds: the first ones that fit into keep_bytes, but
/// at most 100, because each holds communicators and MPI libraries have some thousands.
std::vector<bool> choose_kept(const std::vector<const Case*>& order, Size keep_bytes) {
  constexpr Size most = 100;
  std::vector<bool> kept;
  Size bytes = 0, number = 0;
  for (const Case* point : order) {
    const Size more = largest_memory(plan_of(point->config, point->ranks())).memory.total();
    kept.push_back(bytes + more <= keep_bytes && number < most);
    if (!kept.back()) continue;
    bytes += more;
    ++number;
  }
  return kept;
}

/// Runs all rounds, each with all cases in a different order, so that changes of the machine's
/// speed affect all cases alike.
void run_cases(const std::vector<const Case*>& cases, const AttemptContext& context) {
  const bool is_first = context.world.rank() == 0;
  const MeasureRules& rules = context.study.measure;
  Activity progress("running cases");
  TimeLeft estimate(cases.size(), rules.rounds);
  const std::vector<bool> kept = choose_kept(cases, rules.keep_bytes);
  std::vector<std::unique_ptr<Attempt>> attempts(cases.size());
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (Size round = 0; round < rules.rounds; ++round) {
    if (round > 0) order = shuffled(std::move(order), context.study.seed + round);
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::unique_ptr<Attempt>& attempt = attempts[order[i]];
      const Case& point = *cases[order[i]];
      const std::string place =
          fmt::format("round {}/{}, case {}/{}", round + 1, rules.rounds, i + 1, order.size());
      if (is_first) progress.update(progress_text(place, point.id, estimate));
      if (!attempt) attempt = std::make_unique<Attempt>(point, context, kept[order[i]]);
      attempt->run_round();
      estimate.add(order[i], attempt->round_time());
      if (is_first && round == 0) {
        log_note(fmt::format("{}  {}  {}", place, point.id, describe(*attempt)));
        write_summary(context.results);
      }
    }
    if (is_first && round > 0) write_summary(context.results);
    if (is_first && round == 0 && rules.rounds > 1)
      log_note(
          fmt::format("all cases have begun; {} more rounds of each follow", rules.rounds - 1));
  }
}

/// With --case, the verdict and the counts are those of the chosen cases.
void narrow(Summary& summary, const std::vector<std::string>& ids,
            const ResultsDirectory& results) {
  Results only = read_results(results);
  std::erase_if(only.cases, [&](const CaseResult& result) {
    return std::find(ids.begin(), ids.end(), result.id) == ids.end();
  });
  const Summary alone = summarize_study(only);
  summary.result = alone.result;
  summary.exit_code = alone.exit_code;
  summary.counts = alone.counts;
}

/// Returns a line with the share of the launch spent on references.
std::string reference_text(double seconds, double all) {
  if (seconds == 0) return "";
  return fmt::format("references took {} of the launch's {} ({:.1f} %)\n", human_seconds(seconds),
                     human_seconds(all), 100 * seconds / all);
}

ExitCode conclude(const RunOptions& options, const ResultsDirectory& results,
                  const std::vector<Case>& cases, LaunchState& launch,
                  const std::string& references) {
  Summary summary = write_summary(results);
  const std::string figures = figures_of_merit(summary);
  write_text(results.path() / "figures_of_merit.txt", figures);
  std::vector<Untried> next;
  {
    const Activity activity("searching for a faster configuration");
    next = untried(summary, cases, [&](const Case& point) {
      return launch.has_run(point) ? launch.machine(point) : nullptr;
    });
  }
  launch.set("untried", next);
  launch.write(results);
  if (!options.only.empty()) narrow(summary, options.only, results);
  print_output(summary_table(summary) + untried_text(next) + references + "\n" +
               (options.figures_of_merit ? figures : ""));
  print_result_line(summary.result, result_text(summary) + " in " + results.path().string());
  return summary.exit_code;
}

}  // namespace

ExitCode run_study(Runtime& runtime, const RunOptions& options) {
  const Topology topology(node_of_ranks(Communicator::world()));
  const StudyCases work = load_agreed(options, topology);
  const ResultsDirectory results(options.directory);
  const Communicator world = Communicator::world(options_of(work.study));
  if (options.fault && options.fault->rank >= world.size())
    throw ConfigError("--inject", fmt::format("@{}", options.fault->rank),
                      "the launch has ranks 0 to {}", world.size() - 1);
  const Capacity capacity = capacity_of(world, topology);
  const auto choice = choose(world, work, options, results, capacity);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < choice.size(); ++i)
    if (choice[i] == Selected::What::run) chosen.push_back(i);
  std::vector<const Case*> order;
  for (const std::size_t i : shuffled(std::move(chosen), work.study.seed))
    order.push_back(&work.cases[i]);
  LaunchState launch(runtime, work.study, world, capacity, order, options);
  begin_results(world, work, options, results, choice, launch);

  AbortRecord abort_record(results);
  References references(work.study, results, options);
  references.make(order, world, abort_record);
  launch.set("reference_seconds", references.seconds());
  collectively(world, [&] {
    if (world.rank() == 0) launch.write(results);
  });
  run_cases(order,
            {work.study, world, capacity, launch, references, results, abort_record, options});
  int code = 0;
  collectively(world, [&] {
    if (world.rank() == 0)
      code = static_cast<int>(conclude(options, results, work.cases, launch,
                                       reference_text(references.seconds(), launch.seconds())));
  });
  return static_cast<ExitCode>(broadcast_json(world, code).get<int>());
}

ExitCode show_selection(const RunOptions& options, Size ranks) {
  const StudyCases work = load(options, {});
  const ResultsDirectory results(options.directory);
  print_output(selection_list(work.cases, [&](const Case& point) {
    return select_case(point, results, options, work.study, {ranks});
  }));
  return ExitCode::ok;
}

}  // namespace tessera::bench
