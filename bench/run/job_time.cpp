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
  std::set<std::string> references;
  if (!source) {
    if (study.verify.enabled)
      for (const Case* point : cases) references.insert(reference_name(point->config));
    return limit * static_cast<double>(cases.size() + references.size());
  }
  const PredictedTime time(study, source->machine);
  double sum = 0;
  const auto limited = [&](double seconds) {
    return std::min(limit, set_up_seconds + source->safety * seconds);
  };
  for (const Case* point : cases) {
    const double step = time.step_seconds(point->config, point->ranks());
    sum += limited(time.case_seconds(*point, step));
    const double reference = time.reference_seconds(*point, references);
    if (reference > 0) sum += limited(reference);
  }
  return sum;
}

}  // namespace tessera::bench
