// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>

namespace tessera {
namespace {

constexpr double line_interval = 0.5, first_log = 2, longest_log_interval = 60;  // seconds

ProgressMode chosen_mode = ProgressMode::none;

std::mutex line_mutex;
const Activity* on_line = nullptr;  ///< whose text the line shows; null: there is no line

ProgressMode mode() {
  if (log_rank() != 0) return ProgressMode::none;
  if (chosen_mode != ProgressMode::automatic) return chosen_mode;
  return isatty(STDERR_FILENO) != 0 ? ProgressMode::line : ProgressMode::log;
}

/// Returns the columns of the terminal, or 80 if stderr is none.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Replaces the line. The caller holds the mutex. A terminal that has gone is no reason to stop.
void show(const Activity* activity, const std::string& text) {
  const std::string line = "\r" + one_line(text).substr(0, columns() - 1) + "\x1b[K";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  on_line = activity;
}

}  // namespace

void set_progress_mode(const std::string& option) {
  const char* const variable = std::getenv("TESSERA_PROGRESS");
  const std::string wanted = !option.empty() ? option : variable != nullptr ? variable : "auto";
  const auto mode = value_named<ProgressMode>(wanted);
  if (!mode)
    throw ConfigError(option.empty() ? "TESSERA_PROGRESS" : "--progress", wanted, "{}",
                      must_be_one_of(wanted, names_of<ProgressMode>));
  chosen_mode = *mode;
}

Activity::Activity(const std::string& what)
    : due_(mode() == ProgressMode::line ? line_interval : first_log) {
  const std::lock_guard lock(line_mutex);
  if (mode() == ProgressMode::line && on_line == nullptr) show(this, what);
}

Activity::~Activity() {
  const std::lock_guard lock(line_mutex);
  if (on_line == this) show(nullptr, "");
}

double Activity::seconds_until_due() const {
  if (mode() == ProgressMode::none) return std::numeric_limits<double>::infinity();
  return std::max(0.0, due_ - clock_.seconds());
}

void Activity::update(const std::string& text) {
  if (seconds_until_due() > 0) return;
  const double now = clock_.seconds();
  if (mode() == ProgressMode::log) {
    log_note(text);
    due_ = now + std::clamp(now / 2, first_log, longest_log_interval);
    return;
  }
  const std::lock_guard lock(line_mutex);
  show(this, text);
  due_ = now + line_interval;
}

void above_progress(const std::function<void()>& write) {
  const std::lock_guard lock(line_mutex);
  if (on_line != nullptr) show(nullptr, "");
  write();
}

}  // namespace tessera
