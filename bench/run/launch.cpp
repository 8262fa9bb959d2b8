// SPDX-License-Identifier: Apache-2.0
#include "run/launch.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/outcome.hpp>
#include <tessera/process/provenance.hpp>

#include "measure/machine_speed.hpp"
#include "results/result_parts.hpp"

namespace tessera::bench {
namespace {

/// Returns what the launch lacks for the case, as a sentence; none if it lacks nothing.
std::optional<std::string> lack_of(const Case& point, const Capacity& capacity) {
  const DistributedConfig& distributed = point.config.training.distributed;
  if (point.ranks() > capacity.ranks)
    return fmt::format("needs {} ranks, but the launch has {}", point.ranks(), capacity.ranks);
  if (distributed.threads && capacity.threads && *distributed.threads != *capacity.threads)
    return fmt::format("needs {} per rank, but the launch has {}; set OMP_NUM_THREADS",
                       counted(*distributed.threads, "thread"), *capacity.threads);
  const Outcome backend = outcome_of([&] {
    const Backend asked = point.config.comm.backend;
    if (capacity.backend) choose_backend(asked, *capacity.backend);
  });
  if (backend.failed()) return backend.message;
  return std::nullopt;
}

/// "20261120T140310Z-node7-4711"
std::string launch_name(const nlohmann::json& first_rank, std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}-{}", time, first_rank.at("host").get<std::string>(),
                     first_rank.at("process").get<int>());
}

/// Returns the load of rank 0's machine in the last minute, or null if the system does not tell it.
/// Warns about a busy machine, on which times mean little.
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
                              const Topology& topology) {
  nlohmann::json document{
      {"schema_version", 1},
      {"ranks", world.size()},
      {"seed", study.seed},
      {"order", nlohmann::json::array()},
      {"load_average", load_average()},
      {"provenance",
       collect_provenance(runtime, message_library(world.backend()), nodes_text(topology))},
      {"machines", nlohmann::json::array()}};
  nlohmann::json& provenance = document["provenance"];
  provenance["placement"] = placement_json(gather_json(world, collect_rank_provenance(runtime)));
  document["name"] = broadcast_json(world, launch_name(collect_rank_provenance(runtime),
                                                       provenance.at("time").get<std::string>()));
  return document;
}

}  // namespace

Selected select_case(const Case& point, const CaseResult& result, const RunOptions& options,
                     const Study& study, const Capacity& capacity) {
  using What = Selected::What;
  const auto names = [](const std::vector<std::string>& list, const std::string& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  const bool retries = names(options.retry, result.status), is_new = result.status == "pending";
  const bool continues = result.is_measured() && result.launches < study.measure.launches;
  if (point.skip_reason) return {What::skip, false, *point.skip_reason};
  if (!options.only.empty() && !names(options.only, point.id))
    return {What::leave, false, "not selected by --case"};
  if (!retries && !is_new && !continues)
    return {What::keep, false, "has a result: " + result.status};
  if (!retries && options.give_up && result.crashes >= *options.give_up)
    return {What::give_up, false, fmt::format("launches that ended during it: {}", result.crashes)};
  if (const auto lack = lack_of(point, capacity)) return {What::pending, false, *lack};
  return {What::run, retries, retries ? "again: " + result.status : continues ? "more rounds" : ""};
}

// std::shuffle may differ between standard libraries.
std::vector<std::size_t> shuffled(std::vector<std::size_t> numbers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(random() % i)]);
  return numbers;
}

void check_id(const std::vector<Case>& cases, const std::string& id) {
  std::vector<std::string> ids;
  for (const Case& point : cases) ids.push_back(point.id);
  if (std::find(ids.begin(), ids.end(), id) != ids.end()) return;
  const auto near = suggest_nearest(id, ids);
  throw ConfigError("--case", id,
                    "is not a case of the study" + (near ? "; did you mean " + *near + "?"
                                                         : "; tessera-bench list shows them"));
}

LaunchState::LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
                         const ResultsDirectory& results, const RunOptions& options,
                         const Capacity& capacity, const std::vector<const Case*>& cases)
    : study(study),
      world(world),
      results(results),
      options(options),
      abort_record(results, study.limits),
      document_(first_document(runtime, study, world, capacity.topology)),
      processors_(gather_json(world, {host_name(), cpu_set()})),
      facts_(*capacity.backend) {
  load_file(cases, capacity.threads.value_or(0));
  for (const Case* point : cases) {
    document_["order"].push_back(point->id);
    make_group(*point);
  }
  if (options.machine.empty()) measure_machines(cases);
}

/// Checks the file for all cases before anything is measured.
void LaunchState::load_file(const std::vector<const Case*>& cases, Size threads) {
  collectively(world, [&] {
    if (options.machine.empty() || world.rank() != 0) return;
    const Machine machine_of_file = load_machine(options.machine);
    given_machine_ = machine_of_file.of_threads(machine_of_file.threads > 0 ? threads : 0);
    document_["machines"].push_back(machine_json(*given_machine_));
    for (const Case* point : cases)
      if (machine(*point) != nullptr)
        product_rate(*given_machine_, plan_of(point->config, point->ranks()).input);
  });
}

void LaunchState::make_group(const Case& point) {
  const GroupKey key = key_of(point);
  if (groups_.count(key) > 0) return;
  const auto& [ranks, backend] = key;
  if (worlds_.count(backend) == 0) {
    CommOptions own = world.options();
    own.backend = backend;
    worlds_.emplace(backend, Communicator::world(own));
  }
  groups_.emplace(key, first_ranks(worlds_.at(backend), ranks, "case"));
}

void LaunchState::measure_machines(const std::vector<const Case*>& cases) {
  std::map<GroupKey, std::map<std::string, GemmType>> types;
  for (const Case* point : cases) {
    const MatmulPrecision precision = point->config.model.matmul_precision;
    const std::string type(precision == MatmulPrecision::strict
                               ? name_of(compute_type(point->config))
                               : name_of(precision));
    types[key_of(*point)].emplace(type, gemm_type(point->config));
  }
  // A shared machine changes its speed within seconds. A study of few rounds asks for little time.
  constexpr Size several = 3;
  const Size times = study.measure.rounds < several ? 1 : several;
  std::map<GroupKey, std::vector<Machine>> measured;
  for (Size i = 0; i < times; ++i)
    for (const auto& [key, named] : types) {
      if (world.rank() < key.first) {
        const Communicator& ranks = groups_.at(key).ranks;
        measured[key].push_back(
            measure_machine(ranks, node_of_ranks(ranks), facts_, study.measure.gemm_size, named));
      }
      sleep_until_all_arrive(study.limits);
    }
  for (const auto& [key, machines] : measured) {
    Machine machine = typical_machine(machines);
    machine.name = fmt::format("measured-{}", counted(key.first, "rank"));
    std::replace(machine.name.begin(), machine.name.end(), ' ', '-');
    document_["machines"].push_back(machine_json(machine));
    machines_.emplace(key, std::move(machine));
  }
}

const Machine* LaunchState::machine(const Case& point) const {
  if (world.rank() != 0) return nullptr;
  if (!given_machine_) return &machines_.at(key_of(point));
  const auto threads = point.config.training.distributed.threads;
  return threads && *threads != given_machine_->threads ? nullptr : &*given_machine_;
}

bool LaunchState::is_oversubscribed(const Case& point) const {
  std::map<std::string, std::pair<Size, std::set<int>>> nodes;  // ranks, processors
  for (Size rank = 0; rank < point.ranks(); ++rank) {
    const nlohmann::json& one = processors_[rank];
    auto& [ranks, processors] = nodes[one[0]];
    ++ranks;
    for (const int processor : one[1]) processors.insert(processor);
  }
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    const auto& [ranks, processors] = node.second;
    return !processors.empty() && ranks * ExecSpace().concurrency() > std::ssize(processors);
  });
}

void LaunchState::begin(const Chosen& chosen) {
  journal = std::make_unique<Journal>(results.path(), name(), chosen);
  results.write("launches/" + name() + ".json", document_);
}

}  // namespace tessera::bench
