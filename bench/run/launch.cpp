// SPDX-License-Identifier: Apache-2.0
#include "run/launch.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/view.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/provenance.hpp>

#include "results/documents.hpp"
#include "run/predicted_time.hpp"

namespace tessera::bench {
namespace {

constexpr Size gemm_repetitions = 10;

/// "20261120T140310Z-node7-4711"
std::string launch_name(const nlohmann::json& first_rank, std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}-{}", time, first_rank.at("host").get<std::string>(),
                     first_rank.at("process").get<int>());
}

/// How many processes wanted to run in the last minute, before this launch has done much; null
/// where the system does not tell. Times of a machine that others use say little.
nlohmann::json load_average() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return nullptr;
  const unsigned processors = std::thread::hardware_concurrency();
  if (processors > 0 && load > processors)
    log_warning(
        fmt::format("this machine is busy: load {:.1f} on {} processors", load, processors));
  return load;
}

nlohmann::json first_document(const Runtime& runtime, const Study& study, const Communicator& world,
                              const Topology& topology,
                              const std::vector<nlohmann::json>& of_ranks) {
  nlohmann::json document{
      {"schema_version", 1},
      {"ranks", world.size()},
      {"seed", study.seed},
      {"order", nlohmann::json::array()},
      {"load_average", load_average()},
      {"provenance",
       collect_provenance(runtime, message_library(world.backend()), nodes_text(topology))},
      {"calibration", nlohmann::json::array()}};
  nlohmann::json& provenance = document["provenance"];
  provenance["placement"] = placement_json(of_ranks);
  document["name"] = broadcast_json(world, launch_name(collect_rank_provenance(runtime),
                                                       provenance.at("time").get<std::string>()));
  return document;
}

}  // namespace

LaunchState::LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
                         const Capacity& capacity, const std::vector<const Case*>& cases,
                         const ResultsDirectory& results, const RunOptions& options)
    : of_ranks_(gather_json(world, collect_rank_provenance(runtime))),
      document_(first_document(runtime, study, world, capacity.topology, of_ranks_)),
      processors_(gather_json(world, {host_name(), cpu_set()})),
      facts_(*capacity.backend),
      calibrations_(results, options.calibration, world, document_.at("provenance"), of_ranks_) {
  predict_on(options.machine, study, world, cases);
  for (const Case* point : cases) prepare(*point, study, world);
  for (auto& [key, works] : works_by_group(cases, study.limits))
    if (world.rank() < key.first)
      calibrations_.prepare(key, groups_.at(key).ranks, probe_, std::move(works));
}

/// All of it before anything is measured: a machine file may lack what some case needs. It
/// describes whole ranks, and has no prediction where a case asks for threads.
void LaunchState::predict_on(const std::string& machine_file, const Study& study,
                             const Communicator& world, const std::vector<const Case*>& cases) {
  collectively(world, [&] {
    if (machine_file.empty() || world.rank() != 0) return;
    const Machine machine = load_machine(machine_file);
    document_["machine_file"] = machine_json(machine);
    const PredictedTime time(study, machine);
    for (const Case* point : cases)
      if (!point->config.training.distributed.threads)
        machine_predictions_[point->id] = {
            {"machine", machine.name},
            {"step_seconds", time.step_seconds(point->config, point->ranks())}};
  });
}

/// The plans of the cases that a group has memory for.
std::map<GroupKey, std::vector<WorkOfCase>> LaunchState::works_by_group(
    const std::vector<const Case*>& cases, const Limits& limits) const {
  std::map<GroupKey, std::vector<WorkOfCase>> works;
  for (const Case* point : cases) {
    Plan plan = plan_of(point->config, point->ranks());
    const Size bytes = largest_memory(plan).memory.total();
    if (!fits(bytes, limits)) continue;
    works[key_of(*point)].push_back({std::move(plan), point->config.training});
  }
  return works;
}

void LaunchState::calibrate(const Limits& limits) {
  for (const auto& [key, group] : groups_) {
    if (calibrations_.has(key)) calibrations_.pass(key);
    sleep_until_all_arrive(limits);
  }
  document_["calibration_seconds"] = calibrations_.seconds();
}

/// Group and peak of a case, unless an earlier one had the same.
void LaunchState::prepare(const Case& point, const Study& study, const Communicator& world) {
  document_["order"].push_back(point.id);
  const Size n = point.ranks();
  const bool inside = world.rank() < n;
  const int color = inside ? 0 : 1;
  const GroupKey key = key_of(point);
  if (worlds_.count(key.second) == 0) {
    CommOptions options = world.options();
    options.backend = key.second;
    worlds_.emplace(key.second, Communicator::world(options));
  }
  if (groups_.count(key) == 0)
    groups_.emplace(key, Group{worlds_.at(key.second).split(color, world.rank(), "case"),
                               split_raw(MPI_COMM_WORLD, color, world.rank())});
  const auto [peak, is_new] = peaks_.try_emplace(peak_key(point), 0);
  if (!is_new) return;
  if (inside)
    peak->second = gemm_peak(groups_.at(key).ranks, gemm_type(point.config),
                             study.measure.gemm_size, gemm_repetitions);
  sleep_until_all_arrive(study.limits);
  document_["calibration"].push_back({{"ranks", n},
                                      {"dtype", name_of(point.config.model.dtype)},
                                      {"gemm_flops_per_second", peak->second}});
}

double LaunchState::threads_per_processor(const Case& point) const {
  std::map<std::string, std::pair<Size, std::set<int>>> nodes;  // ranks, processors
  for (Size rank = 0; rank < point.ranks(); ++rank) {
    const nlohmann::json& one = processors_[rank];
    auto& [ranks, processors] = nodes[one[0]];
    ++ranks;
    for (const int processor : one[1]) processors.insert(processor);
  }
  double most = 1;
  for (const auto& [host, node] : nodes) {
    const auto& [ranks, processors] = node;
    if (!processors.empty())
      most = std::max(most, static_cast<double>(ranks * ExecSpace().concurrency()) /
                                static_cast<double>(processors.size()));
  }
  return most;
}

void LaunchState::write(const ResultsDirectory& results) const {
  results.write("launches/" + name() + ".json", document_);
  calibrations_.write();
}

}  // namespace tessera::bench
