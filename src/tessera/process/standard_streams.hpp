// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera {

/// Writes to standard output and flushes it. Throws Error (usage) with the system's reason, such as
/// a full disk or a closed pipe.
void print_output(std::string_view text);

}  // namespace tessera
