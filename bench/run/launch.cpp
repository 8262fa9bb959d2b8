// SPDX-License-Identifier: Apache-2.0
#include "run/launch.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/log.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/comm/share_json.hpp>

#include "run/sleeping.hpp"

namespace tessera::bench {
namespace {

/// "20261120T140310Z-node7-4711"
std::string launch_name(const nlohmann::json& first_rank, std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}-{}", time, first_rank.at("host").get<std::string>(),
                     first_rank.at("process").get<int>());
}

/// How many processes wanted to run in the last minute, before this launch has done much; none
/// where the system does not tell.
std::optional<double> load_average() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return std::nullopt;
  return load;
}

/// Times of a machine that others use say little.
void warn_of_load(const std::optional<double>& load) {
  const unsigned processors = std::thread::hardware_concurrency();
  if (load && processors > 0 && *load > processors)
    log_warning(
        fmt::format("this machine is busy: load {:.1f} on {} processors", *load, processors));
}

}  // namespace

LaunchState::LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
                         const std::vector<const Case*>& cases)
    : size_(world.size()),
      load_(load_average()),
      provenance_(collect_provenance(runtime, nccl_version())) {
  warn_of_load(load_);
  provenance_["ranks"] = gather_json(world, collect_rank_provenance(runtime));
  const nlohmann::json name = broadcast_json(
      world, launch_name(provenance_["ranks"][0], provenance_.at("time").get<std::string>()));
  name_ = name.get<std::string>();
  for (const Case* point : cases) {
    const Size n = point->ranks();
    const bool inside = world.rank() < n;
    if (groups_.count(n) == 0) {
      Group group{world.split(inside ? 0 : 1, world.rank(), "case")};
      MPI_Comm_split(MPI_COMM_WORLD, inside ? 0 : 1, world.rank(), &group.raw);
      groups_.emplace(n, group);
    }
    if (calibrations_.count(key(*point)) > 0) continue;
    Calibration& made = calibrations_[key(*point)];
    if (inside) made = calibrate(groups_.at(n).ranks, key(*point).second, study.measure.gemm_size);
    sleep_until_all_arrive();
  }
}

LaunchState::~LaunchState() {
  for (auto& [ranks, group] : groups_) MPI_Comm_free(&group.raw);
}

std::pair<Size, DType> LaunchState::key(const Case& point) {
  return {point.ranks(), point.config.model.dtype};
}

const Group& LaunchState::group(const Case& point) const { return groups_.at(point.ranks()); }

const Calibration& LaunchState::calibration(const Case& point) const {
  return calibrations_.at(key(point));
}

nlohmann::json LaunchState::document(const std::vector<std::string>& order,
                                     std::uint64_t seed) const {
  nlohmann::json calibrations = nlohmann::json::array();
  for (const auto& [key, calibration] : calibrations_) calibrations.push_back(to_json(calibration));
  return {{"schema_version", 1},
          {"name", name_},
          {"ranks", size_},
          {"seed", seed},
          {"order", order},
          {"load_average", load_ ? nlohmann::json(*load_) : nlohmann::json()},
          {"provenance", provenance_},
          {"calibration", calibrations}};
}

}  // namespace tessera::bench
