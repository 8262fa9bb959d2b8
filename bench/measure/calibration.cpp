// SPDX-License-Identifier: Apache-2.0
#include "measure/calibration.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "measure/breakdown.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

double line(double x, double x0, double y0, double x1, double y1) {
  return std::max(0.0, y0 + (y1 - y0) * (x - x0) / (x1 - x0));
}

}  // namespace

bool Curve::covers(Size size) const {
  return std::any_of(points_.begin(), points_.end(), [&](const auto& point) {
    return std::abs(point.first - size) * 50 <= point.first;
  });
}

Cost Curve::at(Size size) const {
  const auto x = static_cast<double>(size);
  if (points_.size() == 1) {
    const auto& [only, cost] = *points_.begin();
    const double share = x / static_cast<double>(only);
    return {cost.seconds * share, cost.lag * share, cost.exposed * share};
  }
  // The two points between which the size lies, or the two that are nearest.
  auto right = points_.lower_bound(size);
  if (right == points_.end()) --right;
  if (right == points_.begin()) ++right;
  const auto& [x1, y1] = *right;
  const auto& [x0, y0] = *std::prev(right);
  const auto a = static_cast<double>(x0), b = static_cast<double>(x1);
  return {line(x, a, y0.seconds, b, y1.seconds), line(x, a, y0.lag, b, y1.lag),
          line(x, a, y0.exposed, b, y1.exposed)};
}

void to_json(Json& json, const Calibration& calibration) {
  Json curves = Json::object();
  for (const auto& [name, curve] : calibration.curves)
    for (const auto& [size, cost] : curve.points()) {
      Json point{{"size", size}, {"seconds", cost.seconds}, {"lag_seconds", cost.lag}};
      if (cost.exposed > 0) point["exposed_seconds"] = cost.exposed;
      curves[name].push_back(point);
    }
  json = {{"ranks", calibration.ranks},
          {"identity", calibration.identity},
          {"machine", calibration.machine},
          {"curves", curves}};
}

void from_json(const Json& json, Calibration& calibration) {
  calibration = {json.at("ranks"), json.at("identity"), json.at("machine"), {}};
  for (const auto& [name, points] : json.at("curves").items())
    for (const Json& point : points)
      calibration.curves[name].add(point.at("size"), {point.at("seconds"), point.at("lag_seconds"),
                                                      point.value("exposed_seconds", 0.0)});
}

std::string curve_name(const Work& work, const WorkOfCase& of) {
  std::string name = work.name();
  const OptimizerConfig& optimizer = of.training.optimizer;
  if (work.kind == WorkKind::loss) name += fmt::format(" {}", name_of(of.training.loss));
  if (work.kind == WorkKind::update)
    name +=
        fmt::format(" {}{}", name_of(optimizer.kind), optimizer.momentum > 0 ? " momentum" : "");
  if (work.ranks) {
    const MeshShape& mesh = of.plan.input.mesh;
    std::vector<int> group;
    for (const Size rank : mesh.group(mesh.effective(axes_of(*work.ranks, of.plan.input)), 0))
      group.push_back(static_cast<int>(rank));
    name += fmt::format(" ranks {}", number_ranges(group));
  }
  return name;
}

double slowdown(const Work& work, const MachineSpeed& then, const MachineSpeed& now) {
  return work.has_products ? now.gemm_seconds / then.gemm_seconds
                           : now.memory_seconds / then.memory_seconds;
}

SimulatedStep predict(const WorkOfCase& of, const Calibration& calibration, const MachineSpeed& now,
                      double threads_per_processor) {
  return simulate(of.plan, [&](const Work& work) {
    Cost cost = calibration.curves.at(curve_name(work, of)).at(work.size);
    const double factor = slowdown(work, calibration.machine, now);
    // Timed by itself, a short piece of work is not interrupted.
    if (!work.ranks) cost.lag += cost.seconds * (threads_per_processor - 1);
    return Cost{cost.seconds * factor, cost.lag * factor, cost.exposed * factor};
  });
}

}  // namespace tessera::bench
