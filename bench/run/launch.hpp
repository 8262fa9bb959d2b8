// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/process/runtime.hpp>

#include "measure/gemm_peak.hpp"
#include "measure/machine_probe.hpp"
#include "run/calibrations.hpp"
#include "run/group.hpp"
#include "run/selection.hpp"

namespace tessera::bench {

/// What is the same for all cases of one launch.
class LaunchState {
 public:
  /// Makes the groups that these cases, in the order in which they run, need, and finds out what
  /// they can do. Throws like load_machine() and PredictedTime for the options' machine file.
  /// Collective over all ranks.
  LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
              const Capacity& capacity, const std::vector<const Case*>& cases,
              const ResultsDirectory& results, const RunOptions& options);

  std::string name() const { return document_.at("name"); }
  /// launches/<name>.json
  const nlohmann::json& document() const { return document_; }
  /// The first ranks of the job, as many as a case needs.
  const Group& group(const Case& point) const { return groups_.at(key_of(point)); }
  const Calibration& calibration(const Case& point) const {
    return calibrations_.of(key_of(point));
  }
  /// FLOP/s of a rank, as far as the launch knows.
  double peak(const Case& point) const { return peaks_.at(peak_key(point)); }
  /// What the machine file says of a case; null without one, and beyond rank 0.
  nlohmann::json machine_prediction(const Case& point) const {
    return machine_predictions_.value(point.id, nlohmann::json());
  }
  /// Threads of its ranks for each processor of a node, where there are more of them; else 1. On
  /// rank 0 only.
  double threads_per_processor(const Case& point) const;
  const MachineProbe& probe() const { return probe_; }
  /// Since it began.
  double seconds() const { return clock_.seconds(); }
  /// A pass of every calibration. Collective over all ranks.
  void calibrate(const Limits& limits);
  void set_reference_seconds(double seconds) { document_["reference_seconds"] = seconds; }
  /// What the next launch needs; on rank 0.
  void write(const ResultsDirectory& results) const;

 private:
  Timer clock_;
  MachineProbe probe_;
  std::vector<nlohmann::json> of_ranks_;  ///< provenance of each, on rank 0
  nlohmann::json document_;
  using PeakKey = std::pair<Size, GemmType>;
  static PeakKey peak_key(const Case& point) { return {point.ranks(), gemm_type(point.config)}; }
  GroupKey key_of(const Case& point) const {
    return {point.ranks(), choose_backend(comm_options(point.config).backend, facts_).backend};
  }
  std::map<GroupKey, std::vector<WorkOfCase>> works_by_group(const std::vector<const Case*>& cases,
                                                             const Limits& limits) const;
  void predict_on(const std::string& machine_file, const Study& study, const Communicator& world,
                  const std::vector<const Case*>& cases);
  void prepare(const Case& point, const Study& study, const Communicator& world);

  /// Of each rank, on rank 0: host, the processors it may use.
  std::vector<nlohmann::json> processors_;
  BackendFacts facts_;
  std::map<Backend, Communicator> worlds_;
  std::map<GroupKey, Group> groups_;
  std::map<PeakKey, double> peaks_;
  nlohmann::json machine_predictions_ = nlohmann::json::object();  ///< by the id of the case
  Calibrations calibrations_;
};

}  // namespace tessera::bench
