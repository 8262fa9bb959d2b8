// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string_view>

#include <tessera/base/timer.hpp>

namespace tessera {

/// The rank that this process speaks as; 0 until the runtime knows better.
void set_log_rank(int rank);
int log_rank();

/// "tessera: <message>" and "tessera: warning: <message>" on stderr, from rank 0 only.
void log_note(std::string_view message);
void log_warning(std::string_view message);

/// "tessera: <message>" and "tessera: error: <message>" on stderr from whichever rank calls; always
/// one line.
void log_from_this_rank(std::string_view message);
void log_error(std::string_view message);

/// Whether stderr is a terminal and this is the rank that writes to it.
bool progress_is_visible();

/// One line that is rewritten in place. Writes nothing unless enabled; erases itself at the end, so
/// that results start in column 0.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled = progress_is_visible(), std::FILE* out = stderr,
                        double seconds_between_updates = 0.1);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether an update now would be shown: callers skip the formatting otherwise.
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
