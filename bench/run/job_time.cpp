// SPDX-License-Identifier: Apache-2.0
#include "run/job_time.hpp"

#include <algorithm>
#include <set>

#include "run/predicted_time.hpp"

namespace tessera::bench {
namespace {

constexpr double set_up_seconds = 10;

}  // namespace

double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source) {
  const double limit = study.limits.case_seconds;
  if (!source) return limit * static_cast<double>(cases.size());
  const PredictedTime time(study, source->machine);
  double sum = 0;
  std::set<std::string> references;
  for (const Case* point : cases) {
    const double step = time.step_seconds(point->config, point->ranks());
    const double seconds =
        time.case_seconds(*point, step) + time.reference_seconds(*point, references);
    sum += std::min(limit, set_up_seconds + source->safety * seconds);
  }
  return sum;
}

}  // namespace tessera::bench
