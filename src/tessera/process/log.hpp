// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera {

/// The rank of this process in log lines; 0 until the runtime sets it.
void set_log_rank(int rank);
int log_rank();

/// Rank 0 prints "tessera: <message>" or "tessera: warning: <message>" on stderr.
void log_note(std::string_view message);
void log_warning(std::string_view message);

/// The calling rank prints "tessera: <message>" or "tessera: error: <message>" on stderr, as one
/// line.
void log_from_this_rank(std::string_view message);
void log_error(std::string_view message);

}  // namespace tessera
