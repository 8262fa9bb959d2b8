// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <tessera/base/clock_text.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>

#include "results/result_parts.hpp"
#include "results/summary.hpp"
#include "run/case_rounds.hpp"
#include "run/commands.hpp"
#include "run/console.hpp"
#include "run/references.hpp"

namespace tessera::bench {

namespace {

using Json = nlohmann::json;

StudyCases load(const RunOptions& options, const std::optional<Topology>& launch) {
  StudyCases work;
  work.study = load_study(options.source);
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

/// The work of a launch.
struct Choice {
  Journals journals;                            ///< of earlier launches, on rank 0
  std::vector<const Case*> run;                 ///< in their order
  std::vector<Case> others;                     ///< of earlier launches, on rank 0
  std::map<std::string, std::string> given_up;  ///< reasons by id, on rank 0
  /// The launches whose lines count no longer, by the id of a case to run and by the name of its
  /// reference, on rank 0.
  std::map<std::string, std::vector<std::string>> instead_of;
};

/// Returns which of the launches a case or a reference of this launch replaces: all if it is to be
/// retried, else those of another program.
std::vector<std::string> replaced_launches(std::vector<std::string> launches, bool retries,
                                           const Program& program,
                                           const ResultsDirectory& results) {
  if (!retries)
    std::erase_if(launches, [&](const std::string& launch) {
      const std::optional<LaunchProgram> earlier = results.program(launch);
      return earlier && earlier->program == program;
    });
  return launches;
}

/// Throws ConfigError with a setting that a measured case does not share with the study.
void check_settings(const CaseResult& result, const Study& study, const ResultsDirectory& results) {
  const Json settings = config_as_json(case_of(study, result.factors).config);
  for (const auto& [section, keys] : settings.items())
    for (const auto& [key, value] : keys.items()) {
      const Json::json_pointer at = Json::json_pointer() / section / key;
      // Another release may have had fewer keys.
      if (result.config.contains(at) && result.config.at(at) != value)
        reject(section + "." + key, value,
               "must be {}, as in the results of {}, or -o another directory",
               to_toml(result.config.at(at)), results.path().string());
    }
}

/// Returns the cases of earlier launches that were measured and that the study has no more, because
/// it has other ranks or grids now. Throws ConfigError if the study has other settings.
std::vector<Case> other_cases(const StudyCases& work, const Journals& journals,
                              const ResultsDirectory& results) {
  std::set<std::string> ids, labels;
  for (const Case& point : work.cases) {
    ids.insert(point.id);
    labels.insert(point.label);
  }
  const StudyCases earlier = results.study();
  const std::vector<CaseResult> found = derive_results(earlier, journals).cases;
  std::vector<Case> others;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].is_measured() || ids.count(found[i].id) > 0) continue;
    check_settings(found[i], work.study, results);
    if (labels.count(found[i].label) == 0) others.push_back(earlier.cases[i]);
  }
  return others;
}

/// Decides about each case on rank 0. Writes nothing. Collective.
Choice choose(const Communicator& world, const StudyCases& work, const RunOptions& options,
              const ResultsDirectory& results, const Capacity& capacity) {
  Choice choice;
  std::vector<std::size_t> run;
  collectively(world, [&] {
    if (world.rank() != 0) return;
    const Program program = StoredDocument(build_provenance({})).as<Program>();
    check_results_apart(work, options.machine, results);
    // Finds damaged files before anything runs.
    if (results.check(work.study, may_have_results(options))) {
      choice.journals = read_journals(results.path());
      choice.others = other_cases(work, choice.journals, results);
    }
    for (std::size_t i = 0; i < work.cases.size(); ++i) {
      const Case& point = work.cases[i];
      const CaseHistory history = history_of(choice.journals, point.id);
      const Selected chosen = select_case(point, history.result, options, work.study, capacity);
      if (chosen.what == Selected::What::give_up) choice.given_up[point.id] = chosen.note;
      if (chosen.what != Selected::What::run) continue;
      run.push_back(i);
      choice.instead_of[point.id] =
          replaced_launches(history.launches, chosen.retries, program, results);
      const std::string reference = reference_name(point.config);
      const bool is_doubted = chosen.retries && history.result.status == "invalid";
      if (const auto known = choice.instead_of.find(reference);
          known == choice.instead_of.end() || is_doubted)
        choice.instead_of[reference] = replaced_launches(
            history_of(choice.journals, reference).launches, is_doubted, program, results);
    }
  });
  run = broadcast_json(world, run).get<std::vector<std::size_t>>();
  for (const std::size_t i : shuffled(std::move(run), work.study.seed))
    choice.run.push_back(&work.cases[i]);
  return choice;
}

/// Writes the first files of a launch, after all its input was checked, so that wrong input leaves
/// the directory as it was. Collective.
void begin_results(LaunchState& launch, const StudyCases& work, const Choice& choice) {
  collectively(launch.world, [&] {
    if (launch.world.rank() != 0) return;
    Chosen chosen{{}, launch.options.give_up};
    for (const Case* point : choice.run) chosen.runs.push_back(point->id);
    StudyCases all = work;
    all.cases.insert(all.cases.end(), choice.others.begin(), choice.others.end());
    launch.results.prepare(all, may_have_results(launch.options));
    launch.begin(chosen);
    for (const Case& point : work.cases) {
      const auto found = choice.given_up.find(point.id);
      if (found == choice.given_up.end()) continue;
      End end{point.id};
      end.time = utc_time();
      end.give_up = launch.options.give_up;
      end.result = new_result(work.study, point);
      end.result->launch = launch.name();
      end.result->end(ExitCode::communication,
                      "its launch ended during the case; " + found->second);
      launch.journal->append(end);
    }
  });
}

std::string describe(const CaseResult& result) {
  if (result.is_measured())
    return fmt::format("{} a step, {} samples/s", human_seconds(result.step_seconds->median),
                       rate(result.samples_per_second));
  return fmt::format("{}: {}", result.status, result.reason);
}

/// Returns the time left if other rounds take as long as the mean of those that were run: " (0:12
/// left)". First rounds verify their cases and take longer, so this is too much in the beginning.
std::string time_left(double seconds, std::size_t done, std::size_t all) {
  if (done == 0) return "";
  const double mean = seconds / static_cast<double>(done);
  return fmt::format(" ({} left)", clock_text(mean * static_cast<double>(all - done)));
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
void run_cases(LaunchState& launch, Choice& choice, const References& references) {
  const std::vector<const Case*>& cases = choice.run;
  const bool is_first = launch.world.rank() == 0;
  const MeasureRules& rules = launch.study.measure;
  Activity progress("running cases");
  const Timer clock;
  const std::size_t all = cases.size() * static_cast<std::size_t>(rules.rounds);
  const std::vector<bool> kept = choose_kept(cases, rules.keep_bytes);
  std::vector<std::unique_ptr<CaseRounds>> begun(cases.size());
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto write = [&](const std::string& id) {
    Summary summary;
    collectively(launch.world, [&] {
      if (is_first) summary = write_results(launch.results, id);
    });
    return summary;
  };
  for (Size round = 0; round < rules.rounds; ++round) {
    if (round > 0) order = shuffled(std::move(order), launch.study.seed + round);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t number = order[i];
      const Case& point = *cases[number];
      const std::string place =
          fmt::format("round {}/{}, case {}/{}", round + 1, rules.rounds, i + 1, order.size());
      const std::size_t done = static_cast<std::size_t>(round) * order.size() + i;
      if (is_first)
        progress.update(place + time_left(clock.seconds(), done, all) + "  " + point.id);
      std::unique_ptr<CaseRounds>& rounds = begun[number];
      if (round == 0)
        rounds = std::make_unique<CaseRounds>(point, launch, references, kept[number],
                                              std::move(choice.instead_of[point.id]));
      rounds->run_round();
      if (round > 0) continue;
      const Summary summary = write(point.id);
      for (const SummaryRow& row : summary.cases)
        if (row.result.id == point.id)
          log_note(fmt::format("{}  {}  {}", place, point.id, describe(row.result)));
    }
    if (round > 0) write("");
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

ExitCode conclude(const RunOptions& options, const ResultsDirectory& results,
                  const std::string& references) {
  Summary summary = write_results(results);
  const std::string figures = figures_of_merit(summary);
  write_text(results.path() / "figures_of_merit.txt", figures);
  if (!options.only.empty()) narrow(summary, options.only, results);
  print_output(summary_table(summary) + references + "\n" +
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
  Choice choice = choose(world, work, options, results, capacity);
  LaunchState launch(runtime, work.study, world, results, options, capacity, choice.run);
  begin_results(launch, work, choice);
  References references(launch);
  references.make(choice.run, choice.journals, choice.instead_of);
  run_cases(launch, choice, references);
  int code = 0;
  collectively(world, [&] {
    if (world.rank() == 0)
      code = static_cast<int>(conclude(options, results, references.meshes_text()));
  });
  return static_cast<ExitCode>(broadcast_json(world, code).get<int>());
}

ExitCode show_selection(const RunOptions& options, Size ranks) {
  const StudyCases work = load(options, {});
  const Journals journals = read_journals(options.directory);
  print_output(selection_list(work.cases, [&](const Case& point) {
    return select_case(point, history_of(journals, point.id).result, options, work.study, {ranks});
  }));
  return ExitCode::ok;
}

}  // namespace tessera::bench
