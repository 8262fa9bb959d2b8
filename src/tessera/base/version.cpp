// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/version.hpp>

namespace tessera {

std::string_view version() { return TESSERA_VERSION; }

}  // namespace tessera
