// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <limits>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/text.hpp>

namespace tessera {

Size kernel_threads() {
  return on_host && Kokkos::is_initialized() ? ExecSpace().concurrency() : 1;
}

Size serial_below() {
  constexpr const char* name = "TESSERA_SERIAL_BELOW";
  Size elements = 16384;
  if (const char* value = std::getenv(name)) {
    const std::optional<Size> number = number_of<Size>(value);
    if (!number || *number < 0)
      throw ConfigError(name, value, "must be a number of elements, 0 or more");
    elements = *number;
  }
  return kernel_threads() == 1 ? std::numeric_limits<Size>::max() : elements;
}

}  // namespace tessera
