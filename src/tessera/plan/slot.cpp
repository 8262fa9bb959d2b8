// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/slot.hpp>

namespace tessera {

std::string_view name_of(TensorRole role) {
  switch (role) {
    case TensorRole::parameter:
      return "parameter";
    case TensorRole::gradient:
      return "gradient";
    case TensorRole::moment:
      return "moment";
    case TensorRole::activation:
      return "activation";
    case TensorRole::batch:
      return "batch";
    case TensorRole::scratch:
      return "scratch";
  }
  return "unknown";
}

}  // namespace tessera
