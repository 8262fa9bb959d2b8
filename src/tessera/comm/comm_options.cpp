// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/comm_options.hpp>

namespace tessera {

bool check_collectives_by_default() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

}  // namespace tessera
