// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/plan/action.hpp>

namespace tessera {

std::string_view name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::loss:
      return "loss";
    case ActionKind::backward:
      return "backward";
    case ActionKind::reduce:
      return "reduce";
    case ActionKind::start_reduce:
      return "start_reduce";
    case ActionKind::finish_reduce:
      return "finish_reduce";
    case ActionKind::clip:
      return "clip";
    case ActionKind::update:
      return "update";
  }
  return "unknown";
}

std::string to_string(const Action& action, bool with_microbatch) {
  const std::string microbatch = with_microbatch ? fmt::format("m{}", action.microbatch) : "";
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::backward:
      return fmt::format("{}({}{}{})", name_of(action.kind), action.index + 1,
                         with_microbatch ? ", " : "", microbatch);
    case ActionKind::loss:
      return with_microbatch ? fmt::format("loss({})", microbatch) : "loss";
    case ActionKind::reduce:
    case ActionKind::start_reduce:
    case ActionKind::finish_reduce:
      return fmt::format("{}(bucket {})", name_of(action.kind), action.index);
    case ActionKind::clip:
    case ActionKind::update:
      break;
  }
  return std::string(name_of(action.kind));
}

}  // namespace tessera
