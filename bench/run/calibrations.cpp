// SPDX-License-Identifier: Apache-2.0
#include "run/calibrations.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/log.hpp>

#include "results/stored_checks.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Size and time of the program file: an uncommitted change has no revision of its own.
Json executable() {
  std::error_code error;
  const std::filesystem::path file = "/proc/self/exe";
  const auto size = std::filesystem::file_size(file, error);
  const auto time = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return error ? Json() : Json{size, time};
}

/// Program, back end, and the processors and nodes of the first ranks.
Json identity_of(const Json& provenance, const std::vector<Json>& of_ranks, Size ranks,
                 const BackendChoice& messages) {
  Json identity{{"program", program_of(provenance)},
                {"executable", executable()},
                {"backend", provenance.at("kokkos").at("backend")},
                {"concurrency", provenance.at("kokkos").at("concurrency")},
                {"blas", provenance.at("blas")},
                {"mpi", provenance.at("mpi").at("library")},
                {"messages", name_of(messages.backend)},
                {"nodes", nodes_in_order(of_ranks, ranks)}};
  return identity;
}

std::vector<Calibration> read(const ResultsDirectory& results, const std::string& file) {
  try {
    const std::optional<StoredDocument> document = results.read(file);
    if (!document) return {};
    check_calibrations(*document);
    return document->json().at("calibrations").get<std::vector<Calibration>>();
  } catch (const Error& error) {
    log_warning(fmt::format("{}; measuring again", error.what()));
    return {};
  }
}

}  // namespace

Json program_of(const Json& provenance) {
  Json program;
  for (const char* key : {"git_revision", "git_dirty", "compiler", "build_type"})
    program[key] = provenance.value(key, Json());
  return program;
}

Json nodes_in_order(const std::vector<Json>& of_ranks, Size ranks) {
  struct Run {
    Json kind;
    Size first_node, nodes, ranks_each;
  };
  std::vector<Run> runs;
  const auto add = [&](const Run& next) {
    if (!runs.empty()) {
      Run& last = runs.back();
      if (last.kind == next.kind && last.ranks_each == next.ranks_each &&
          last.first_node + last.nodes == next.first_node) {
        last.nodes += next.nodes;
        return;
      }
    }
    runs.push_back(next);
  };
  std::map<Json, Size> nodes;  // by host, in the order of their first ranks
  Run row{{}, 0, 1, 0};        // ranks on one node
  for (Size r = 0; r < ranks; ++r) {
    const Json& rank = of_ranks.at(static_cast<std::size_t>(r));
    const auto node =
        nodes.try_emplace(rank.at("host"), static_cast<Size>(nodes.size())).first->second;
    Json kind{{"cpu_model", rank.at("cpu_model")},
              {"gpu", rank.at("gpu").is_null() ? Json() : Json(true)}};
    if (row.ranks_each > 0 && (row.first_node != node || row.kind != kind)) {
      add(row);
      row.ranks_each = 0;
    }
    row = {std::move(kind), node, 1, row.ranks_each + 1};
  }
  if (row.ranks_each > 0) add(row);
  Json listed = Json::array();
  for (Run& run : runs) {
    listed.push_back(std::move(run.kind));
    listed.back().update(
        {{"first_node", run.first_node}, {"nodes", run.nodes}, {"ranks_each", run.ranks_each}});
  }
  return listed;
}

Calibrations::Calibrations(const ResultsDirectory& results, std::string file,
                           const Communicator& world, const Json& provenance,
                           const std::vector<Json>& of_ranks)
    : results_(results), file_(std::move(file)), provenance_(provenance), of_ranks_(of_ranks) {
  Json found = Json::array();
  collectively(world, [&] {
    if (world.rank() == 0) found = read(results_, file_);
  });
  found_ = broadcast_json(world, found).get<std::vector<Calibration>>();
}

void Calibrations::prepare(const GroupKey& key, const Communicator& ranks,
                           const MachineProbe& probe, std::vector<WorkOfCase> cases) {
  Calibration& made = made_[key];
  made.ranks = ranks.size();
  nlohmann::json identity;
  if (ranks.rank() == 0)
    identity = identity_of(provenance_, of_ranks_, made.ranks, ranks.backend());
  made.identity = broadcast_json(ranks, identity);
  for (const Calibration& found : found_)
    if (found.ranks == made.ranks && found.identity == made.identity) made = found;
  calibrators_.try_emplace(key, made, ranks, probe, std::move(cases));
}

void Calibrations::pass(const GroupKey& key) {
  const Timer timer;
  if (calibrators_.at(key).pass(made_.at(key))) seconds_ += timer.seconds();
}

void Calibrations::write() const {
  Json all = Json::array();
  for (const auto& [key, made] : made_) all.push_back(made);
  for (const Calibration& found : found_)
    if (std::none_of(made_.begin(), made_.end(), [&](const auto& made) {
          return made.second.ranks == found.ranks && made.second.identity == found.identity;
        }))
      all.push_back(found);
  results_.write(file_, {{"schema_version", 1}, {"calibrations", all}});
}

}  // namespace tessera::bench
