// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/process/log.hpp>

namespace tessera {
namespace {

std::atomic<int> this_rank = 0;

// Writes a line at once, so that lines of several ranks do not mix.
void write_line(std::string_view prefix, std::string_view message) {
  const std::string line = fmt::format("{}{}\n", prefix, one_line(message));
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void set_log_rank(int rank) { this_rank = rank; }
int log_rank() { return this_rank; }

void log_note(std::string_view message) {
  if (log_rank() == 0) log_from_this_rank(message);
}

void log_warning(std::string_view message) {
  if (log_rank() == 0) write_line("tessera: warning: ", message);
}

void log_from_this_rank(std::string_view message) { write_line("tessera: ", message); }
void log_error(std::string_view message) { write_line("tessera: error: ", message); }

bool progress_is_visible() { return log_rank() == 0 && isatty(STDERR_FILENO) != 0; }

ProgressLine::ProgressLine(bool enabled, std::FILE* out, double seconds_between_updates)
    : enabled_(enabled), out_(out), interval_(seconds_between_updates) {}

ProgressLine::~ProgressLine() { erase(); }

bool ProgressLine::due() const {
  return enabled_ && (!shown_ || since_update_.seconds() >= interval_);
}

void ProgressLine::update(std::string_view text) {
  if (!due()) return;
  fmt::print(out_, "\r\x1b[K{}", one_line(text));
  std::fflush(out_);
  shown_ = true;
  since_update_.restart();
}

void ProgressLine::erase() {
  if (!shown_) return;
  fmt::print(out_, "\r\x1b[K");
  std::fflush(out_);
  shown_ = false;
}

}  // namespace tessera
