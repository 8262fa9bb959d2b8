// SPDX-License-Identifier: Apache-2.0
#include "run/references.hpp"

#include <algorithm>
#include <set>

#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "results/documents.hpp"
#include "run/group.hpp"
#include "run/reference_run.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Whether a document of the results has the losses of as many steps.
bool is_enough(const Json& document, const std::optional<Size>& steps) {
  if (!document.contains("losses")) return false;
  const Json made = document.value("asked_steps", Json());
  return made.is_null() || (steps && *steps <= made.get<Size>());
}

/// How often a launch has ended while it made this, beside others or alone.
Size times_lost(const Json& document, const char* how) {
  return value_or(value_or(document, "lost", Json::object()), how, Size{0});
}

Json failure_of(const Outcome& outcome, Size ranks) {
  if (outcome.code == ExitCode::out_of_memory)
    return {{"problem", counted(ranks, "rank") + ": " + outcome.message}};
  return {{"error", "its reference: " + outcome.message}, {"code", static_cast<int>(outcome.code)}};
}

}  // namespace

Json References::find(const Config& config) const {
  if (!study_.verify.enabled) return {{"problem", "the study has verify = false"}};
  const std::string name = reference_name(config);
  const auto failure = failures_.find(name);
  if (failure != failures_.end()) return failure->second;
  std::optional<Json> kept;
  Outcome outcome = outcome_of([&] { kept = results_.reference(name); });
  if (!outcome.failed() && !kept) outcome = {ExitCode::usage, name + ": the file is gone"};
  if (outcome.failed())
    return {{"error", outcome.message}, {"code", static_cast<int>(outcome.code)}};
  return *kept;
}

/// Whether this launch is to make the reference of a case that it runs.
bool References::is_wanted(const Case& point, const std::string& name) {
  const Json present = results_.reference(name).value_or(Json::object());
  if (is_enough(present, study_.verify.steps)) return false;
  if (!fits(largest_memory(plan_of(point.config, point.ranks())).memory.total(), study_.limits))
    return false;
  if (!options_.give_up || times_lost(present, "alone") < *options_.give_up) return true;
  failures_[name] = {{"error", "launches ended while computing its reference"},
                     {"code", static_cast<int>(ExitCode::communication)}};
  return false;
}

/// [[{"case": index, "name": file, "first": rank, "ranks": n, "trials": [files]}, ...], ...]: what
/// is made at the same time, on ranks of its own each.
Json References::waves_for(const std::vector<const Case*>& cases, Size ranks) {
  Json waves = Json::array();
  std::set<std::string> names;
  Size next = ranks;  // nothing fits beside the wave before
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Config& config = cases[i]->config;
    const std::string name = reference_name(config);
    if (names.count(name) > 0 || !is_wanted(*cases[i], name)) continue;
    names.insert(name);
    ReferencePlan plan;
    const Outcome outcome =
        outcome_of([&] { plan = plan_reference(config, study_.verify, study_.limits, ranks); });
    if (outcome.failed()) {
      failures_[name] = failure_of(outcome, std::min(study_.verify.ranks, ranks));
      continue;
    }
    Json trials = Json::array();
    for (const Trial& trial : plan.trials)
      if (!results_.read(trial.name)) trials.push_back(trial.name);
    const bool is_suspect =
        times_lost(results_.reference(name).value_or(Json::object()), "together") > 0;
    if (is_suspect || next + plan.run.ranks > ranks) {
      waves.push_back(Json::array());
      next = 0;
    }
    waves.back().push_back({{"case", i},
                            {"name", name},
                            {"first", next},
                            {"ranks", plan.run.ranks},
                            {"trials", trials}});
    next = is_suspect ? ranks : next + plan.run.ranks;
  }
  return waves;
}

/// Leaves word of what a launch would have ended in. Another launch that makes the same at the same
/// time, and so has the lock, is none that has ended.
std::vector<CaseLock> References::begin(const Json& wave) const {
  std::vector<CaseLock> locks;
  const char* how = wave.size() == 1 ? "alone" : "together";
  for (const Json& task : wave) {
    const std::string name = task.at("name");
    auto lock = results_.take(name + ".lock");
    if (!lock) continue;
    locks.push_back(std::move(*lock));
    Json document = results_.reference(name).value_or(Json{{"schema_version", 1}});
    document["lost"][how] = times_lost(document, how) + 1;
    results_.write(name, document);
  }
  return locks;
}

/// What this rank's group has made; null on all but the first of its ranks.
Json References::run(const Json& wave, const std::vector<const Case*>& cases,
                     const Communicator& world) const {
  const auto mine = std::find_if(wave.begin(), wave.end(), [&](const Json& task) {
    const Size first = task.at("first");
    return first <= world.rank() && world.rank() < first + task.at("ranks").get<Size>();
  });
  const int color = static_cast<int>(mine - wave.begin());
  const Group group{world.split(color, world.rank(), "reference"),
                    split_raw(MPI_COMM_WORLD, color, world.rank())};
  if (mine == wave.end()) return nullptr;
  const Config& config = cases[mine->at("case").get<std::size_t>()]->config;
  const ReferencePlan plan = plan_reference(config, study_.verify, study_.limits, world.size());
  Json made;
  const Outcome outcome = run_on_group(
      group, study_.limits, [&] { made = run_reference(plan, mine->at("trials"), group, study_); });
  if (group.ranks.rank() > 0) return nullptr;
  if (outcome.failed()) made = {{"failure", failure_of(outcome, plan.run.ranks)}};
  made["name"] = plan.name;
  return made;
}

void References::keep(const Json& made) {
  if (made.is_null()) return;
  const std::string name = made.at("name");
  Json kept = results_.reference(name).value_or(Json{{"schema_version", 1}});
  kept.erase("lost");  // this launch has not ended in it
  if (made.contains("failure")) {
    failures_[name] = made.at("failure");
  } else {
    for (const Json& trial : made.at("made_trials")) results_.write(trial.at("name"), trial);
    // Another launch may have found the losses of more steps meanwhile.
    if (!is_enough(kept, study_.verify.steps)) kept = made.at("document");
  }
  results_.write(name, kept);
}

void References::make(const std::vector<const Case*>& cases, const Communicator& world,
                      LastWord& last_word) {
  if (!study_.verify.enabled) return;
  const Timer clock;
  const bool is_first = world.rank() == 0;
  Json waves;
  collectively(world, [&] {
    if (is_first) waves = waves_for(cases, world.size());
  });
  waves = broadcast_json(world, waves);
  for (const Json& wave : waves) {
    std::vector<CaseLock> locks;
    collectively(world, [&] {
      if (is_first) locks = begin(wave);
    });
    std::optional<double> deadline;
    if (is_first) deadline = study_.limits.case_seconds;
    // A reference is no case: its file, written before, is what the next launch finds of it.
    last_word.begin({{"id", wave.front().at("name")}}, deadline);
    last_word.enter("reference");
    const Json made = run(wave, cases, world);
    sleep_until_all_arrive(study_.limits);
    last_word.end();
    const std::vector<Json> all = gather_json(world, made);
    collectively(world,
                 [&] { std::for_each(all.begin(), all.end(), [&](auto& one) { keep(one); }); });
  }
  seconds_ = clock.seconds();
}

}  // namespace tessera::bench
