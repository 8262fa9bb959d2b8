// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/mesh/mesh.hpp>

#include "measure/calibration.hpp"
#include "measure/work_run.hpp"

namespace tessera::bench {

/// Times, with all ranks busy, the work of some cases for which a calibration has no point yet.
class Calibrator {
 public:
  /// The cases have as many ranks as there are. Collective over `ranks`.
  Calibrator(const Calibration& calibration, const Communicator& ranks, const MachineProbe& probe,
             std::vector<WorkOfCase> cases);

  /// A pass over all of that work, of a few that are to be spread over a launch: what the machine
  /// does meanwhile then hits the calibration as it hits the cases. The costs become the medians of
  /// the passes made so far, at the machine's speed that the calibration states; a new one states
  /// the median of the passes. False, and nothing done, where there is
  /// nothing left to do. Collective over `ranks`.
  bool pass(Calibration& calibration);

 private:
  struct Timed {
    PlannedWork planned;
    std::vector<double> mean, slowest, exposed;  ///< seconds of each pass
  };

  Communicator ranks_;
  const MachineProbe* probe_;
  std::vector<WorkOfCase> cases_;
  std::vector<Timed> works_;
  std::map<std::string, Mesh> meshes_;
  bool is_new_;                       ///< the calibration had nothing
  std::vector<MachineSpeed> speeds_;  ///< of each pass
};

}  // namespace tessera::bench
