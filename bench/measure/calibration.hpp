// SPDX-License-Identifier: Apache-2.0
// What the parts of a step take on some ranks that are all busy: one curve for each kernel, layer
// and call, through measured sizes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>
#include <tessera/predict/simulate.hpp>

#include "measure/machine_probe.hpp"

namespace tessera::bench {

/// Measured points by size. Between two of them, and beyond the outer two, costs lie on straight
/// lines, never below zero; with one point they are proportional to the size.
class Curve {
 public:
  void add(Size size, const Cost& cost) { points_[size] = cost; }
  /// A size that has been measured, or is within 2 % of one that has.
  bool covers(Size size) const;
  Cost at(Size size) const;
  const std::map<Size, Cost>& points() const { return points_; }

 private:
  std::map<Size, Cost> points_;
};

struct Calibration {
  Size ranks = 1;
  nlohmann::json identity;  ///< of machine, back end and program: others need another calibration
  MachineSpeed machine;     ///< at which the costs are stated
  std::map<std::string, Curve> curves;
};
void to_json(nlohmann::json& json, const Calibration& calibration);
void from_json(const nlohmann::json& json, Calibration& calibration);

/// A case as far as its work depends on it.
struct WorkOfCase {
  Plan plan;
  TrainingConfig training;
};

/// What its curve is called: the work with loss or optimizer, or the ranks that call.
std::string curve_name(const Work& work, const WorkOfCase& of);

/// How much slower than `then` the machine is now, for this work.
double slowdown(const Work& work, const MachineSpeed& then, const MachineSpeed& now);

/// A step at the machine's speed `now`. With more than one thread per processor others wait while
/// one computes. Throws std::out_of_range for work that has no curve.
SimulatedStep predict(const WorkOfCase& of, const Calibration& calibration, const MachineSpeed& now,
                      double threads_per_processor);

}  // namespace tessera::bench
