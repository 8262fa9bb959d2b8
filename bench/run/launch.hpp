// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/runtime.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>

#include "measure/calibration.hpp"
#include "measure/machine_probe.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// The first ranks of the job, as many as a case needs.
struct Group {
  Communicator ranks;
  MpiHandle raw;  ///< to agree with each other on how a case has ended
};

/// What is the same for all cases of one launch.
class LaunchState {
 public:
  /// Makes the groups that these cases, in the order in which they run, need, and finds out what
  /// they can do. Collective over all ranks.
  LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
              const std::vector<const Case*>& cases);

  std::string name() const { return document_.at("name"); }
  /// launches/<name>.json
  const nlohmann::json& document() const { return document_; }
  const Group& group(const Case& point) const { return groups_.at(point.ranks()); }
  const Calibration& calibration(const Case& point) const;
  const MachineProbe& probe() const { return probe_; }
  /// Since it began.
  double seconds() const { return clock_.seconds(); }

 private:
  Timer clock_;
  MachineProbe probe_;
  nlohmann::json document_;
  std::map<Size, Group> groups_;
  std::map<std::pair<Size, DType>, Calibration> calibrations_;
};

}  // namespace tessera::bench
