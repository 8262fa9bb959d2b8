// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/action.hpp>

namespace tessera {

std::string to_string(const Action& action, bool with_microbatch) {
  const ActionRow& row = row_of(action.kind);
  std::vector<std::string> details;
  if (row.subject == ActionSubject::layer) details.push_back(fmt::format("{}", action.index + 1));
  if (row.subject == ActionSubject::unit)
    details.push_back(fmt::format("unit {}", action.index + 1));
  if (row.subject == ActionSubject::bucket)
    details.push_back(fmt::format("bucket {}", action.index));
  if (with_microbatch && row.of_microbatch)
    details.push_back(fmt::format("m{}", action.microbatch));
  if (details.empty()) return std::string(row.name);
  return fmt::format("{}({})", row.name, join(details));
}

}  // namespace tessera
