// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

#include "measure/calibrate.hpp"
#include "results/results_directory.hpp"

namespace tessera::bench {

/// How many of the first ranks of a launch, and the backend of their cases.
using GroupKey = std::pair<Size, Backend>;

/// The calibrations of a launch by group, kept in a file for the next one.
class Calibrations {
 public:
  /// Takes from `file`, a path or a name in the results, what the same program has measured on the
  /// same kind of machine. `provenance`: of the launch; `of_ranks`: of each of them, on rank 0.
  /// Collective over `world`.
  Calibrations(const ResultsDirectory& results, std::string file, const Communicator& world,
               const nlohmann::json& provenance, const std::vector<nlohmann::json>& of_ranks);

  /// What these cases need is measured by the passes that follow. Collective over `ranks`, those of
  /// the group.
  void prepare(const GroupKey& key, const Communicator& ranks, const MachineProbe& probe,
               std::vector<WorkOfCase> cases);
  /// Whether this rank is in a group for which something has been prepared.
  bool has(const GroupKey& key) const { return calibrators_.count(key) > 0; }
  /// One pass on its ranks (Calibrator::pass). Collective over them.
  void pass(const GroupKey& key);
  /// Rank 0 writes the file, with what it held of other programs and machines.
  void write() const;

  const Calibration& of(const GroupKey& key) const { return made_.at(key); }
  double seconds() const { return seconds_; }  ///< that passes have taken on this rank

 private:
  const ResultsDirectory& results_;
  std::string file_;
  const nlohmann::json& provenance_;
  const std::vector<nlohmann::json>& of_ranks_;
  std::vector<Calibration> found_;  ///< in the file
  std::map<GroupKey, Calibration> made_;
  std::map<GroupKey, Calibrator> calibrators_;
  double seconds_ = 0;
};

/// How the first ranks lie on nodes, of each of which `of_ranks` has the provenance: rows of ranks
/// of one kind, as many on each of some nodes that follow each other. Short also for many ranks.
nlohmann::json nodes_in_order(const std::vector<nlohmann::json>& of_ranks, Size ranks);

/// The parts of a launch's provenance that tell one program from another.
nlohmann::json program_of(const nlohmann::json& provenance);

}  // namespace tessera::bench
