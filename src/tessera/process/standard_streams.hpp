// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera {

/// Occupies those of the descriptors 0 to 2 that the parent closed, so that no file or socket
/// opened later gets what is printed. Reading or writing them still fails. Call it first in main.
void occupy_standard_streams();

/// Writes to standard output, at once. Throws Error (usage) with the system's reason: a full disk,
/// a reader that has left.
void print_output(std::string_view text);

}  // namespace tessera
