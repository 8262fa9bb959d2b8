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

std::pair<Size, DType> calibration_key(const Case& point) {
  return {point.ranks(), point.config.model.dtype};
}

}  // namespace

LaunchState::LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
                         const std::vector<const Case*>& cases)
    : document_{{"schema_version", 1},
                {"ranks", world.size()},
                {"seed", study.seed},
                {"order", nlohmann::json::array()},
                {"load_average", load_average()},
                {"provenance", collect_provenance(runtime, nccl_version())},
                {"calibration", nlohmann::json::array()}} {
  nlohmann::json& provenance = document_["provenance"];
  provenance["ranks"] = gather_json(world, collect_rank_provenance(runtime));
  document_["name"] = broadcast_json(
      world, launch_name(provenance["ranks"][0], provenance.at("time").get<std::string>()));
  for (const Case* point : cases) {
    document_["order"].push_back(point->id);
    const Size n = point->ranks();
    const bool inside = world.rank() < n;
    const int color = inside ? 0 : 1;
    if (groups_.count(n) == 0)
      groups_.emplace(
          n, Group{world.split(color, world.rank(), "case"),
                   MpiHandle::split(MPI_COMM_WORLD, color, world.rank(), Site::current())});
    const auto key = calibration_key(*point);
    if (calibrations_.count(key) > 0) continue;
    Calibration& made = calibrations_[key];
    if (inside) made = calibrate(groups_.at(n).ranks, key.second, study.measure.gemm_size);
    sleep_until_all_arrive();
  }
  for (const auto& [key, made] : calibrations_) document_["calibration"].push_back(to_json(made));
}

const Calibration& LaunchState::calibration(const Case& point) const {
  return calibrations_.at(calibration_key(point));
}

}  // namespace tessera::bench
