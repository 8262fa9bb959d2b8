// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>
#include <nlohmann/json.hpp>

#include <tessera/base/runtime.hpp>
#include <tessera/comm/communicator.hpp>

#include "measure/calibration.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// The first ranks of the job, as many as a case needs.
struct Group {
  Communicator ranks;
  MPI_Comm raw = MPI_COMM_NULL;  ///< to agree with each other on how a case has ended
};

/// What is the same for all cases of one launch. Constructing it is collective over all ranks.
class LaunchState {
 public:
  /// Makes the groups that these cases need and finds out what they can do.
  LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
              const std::vector<const Case*>& cases);
  ~LaunchState();
  LaunchState(const LaunchState&) = delete;
  LaunchState& operator=(const LaunchState&) = delete;

  const std::string& name() const { return name_; }
  const Group& group(const Case& point) const;
  const Calibration& calibration(const Case& point) const;
  /// launches/<name>.json
  nlohmann::json document(const std::vector<std::string>& order, std::uint64_t seed) const;

 private:
  static std::pair<Size, DType> key(const Case& point);

  std::string name_;
  int size_ = 1;
  std::optional<double> load_;  ///< of the first rank's machine before the launch
  nlohmann::json provenance_;
  std::map<Size, Group> groups_;
  std::map<std::pair<Size, DType>, Calibration> calibrations_;
};

}  // namespace tessera::bench
