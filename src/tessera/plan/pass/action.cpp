// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/plan/pass/action.hpp>

namespace tessera {

std::string name_of(const Action& action) {
  constexpr std::array<std::string_view, 3> before{"", "start_", "finish_"};
  constexpr std::array<std::string_view, 3> after{"", "_inputs", "_weights"};
  return fmt::format("{}{}{}", before[static_cast<std::size_t>(action.phase)],
                     row_of(action.operation).name,
                     after[static_cast<std::size_t>(action.gradients)]);
}

}  // namespace tessera
