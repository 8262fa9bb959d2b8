// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera {

/// Occupies the descriptors 0 to 2 that the parent process has closed. Otherwise a file opened
/// later would receive the printed text. Reading or writing them still fails. Call it first in
/// main.
void occupy_standard_streams();

/// Writes to standard output and flushes it. Throws Error (usage) with the system's reason, such as
/// a full disk or a closed pipe.
void print_output(std::string_view text);

}  // namespace tessera
