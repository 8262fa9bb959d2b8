// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string_view>

#include <tessera/base/timer.hpp>

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

/// Returns whether this is rank 0 and stderr is a terminal.
bool progress_is_visible();

/// A line that is rewritten in place, and erased by the destructor. Writes nothing unless enabled.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled = progress_is_visible(), std::FILE* out = stderr,
                        double seconds_between_updates = 0.1);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Returns whether an update would be shown now, so that callers can skip the formatting.
  bool due() const;
  void update(std::string_view text);
  void erase();

 private:
  bool enabled_;
  std::FILE* out_;
  double interval_;
  bool shown_ = false;
  Timer since_update_;
};

}  // namespace tessera
