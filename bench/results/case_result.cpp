// SPDX-License-Identifier: Apache-2.0
#include "results/case_result.hpp"

#include <tessera/base/text.hpp>

namespace tessera::bench {

const char* status_for(ExitCode code) {
  switch (code) {
    case ExitCode::wrong_result:
      return "invalid";
    case ExitCode::out_of_memory:
      return "oom";
    case ExitCode::timeout:
      return "timeout";
    case ExitCode::skipped:
      return "skipped";
    default:
      return "failed";
  }
}

void CaseResult::end(ExitCode code, const std::string& why) {
  status = status_for(code);
  reason = one_line(why);
  exit_code = static_cast<int>(code);
}

CaseResult read_case_result(const StoredDocument& document, const std::string& id) {
  const auto result = document.as<CaseResult>();
  if (result.id != id) document["id"].fail("must be the name of its directory, " + id);
  if (const StoredDocument nodes = document["case"]["nodes"]["count"]; !nodes.is_unknown())
    nodes.integer(1, most_ranks);
  for (const StoredDocument& section : document["config"].parts(false)) section.parts(false);
  if (result.status == "failed" || result.status == "timeout" || result.status == "oom")
    document["exit_code"].integer(1, 255);
  if (result.is_measured()) {
    document["step_seconds"]["median"].number();
    document["samples_per_second"].number();
  }
  return result;
}

}  // namespace tessera::bench
