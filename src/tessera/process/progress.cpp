// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <sys/ioctl.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>

namespace tessera {
namespace {

ProgressMode chosen_mode = ProgressMode::none;

/// Returns the columns of the terminal, or 80 if stderr is none.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

struct ShownActivity {
  std::string text;
  Timer clock{};
  double due = 0;            ///< clock time at which an update is shown next
  double reminder = 0;       ///< clock time at which the thread shows it next
  bool has_updates = false;  ///< the thread leaves it alone
};

/// The activities of this process and the line that shows them.
class Screen {
 public:
  static Screen& get() {
    static Screen screen;
    return screen;
  }

  ~Screen() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wakes_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void push(std::string text) {
    const std::lock_guard lock(mutex_);
    activities_.push_back({std::move(text)});
    if (mode() == ProgressMode::none) return;
    activities_.back().due = first_due();
    activities_.back().reminder = 1.5 * first_due();  // an update may be about to come
    start_thread();
    wakes_.notify_all();
  }

  void pop() {
    const std::lock_guard lock(mutex_);
    activities_.pop_back();
    wakes_.notify_all();
    if (!is_shown_) return;
    erase();
    if (!activities_.empty() && activities_.back().has_updates)
      show(activities_.back(), activities_.back().text);
  }

  double seconds_until_due() {
    const std::lock_guard lock(mutex_);
    if (mode() == ProgressMode::none) return std::numeric_limits<double>::infinity();
    return std::max(0.0, activities_.back().due - activities_.back().clock.seconds());
  }

  void update(const std::string& text) {
    const std::lock_guard lock(mutex_);
    ShownActivity& top = activities_.back();
    top.text = text;
    top.has_updates = true;
    if (mode() != ProgressMode::none && top.clock.seconds() >= top.due) top.due = show(top, text);
  }

  void above(const std::function<void()>& write) {
    const std::lock_guard lock(mutex_);
    erase();
    write();
  }

 private:
  static ProgressMode mode() {
    if (log_rank() != 0) return ProgressMode::none;
    if (chosen_mode != ProgressMode::automatic) return chosen_mode;
    return isatty(STDERR_FILENO) != 0 ? ProgressMode::line : ProgressMode::log;
  }

  /// Without a further thread, only updates are shown.
  void start_thread() {
    if (thread_.joinable()) return;
    try {
      thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
    }
  }

  static double first_due() { return mode() == ProgressMode::line ? 0.3 : 2; }

  /// Returns the clock time at which to show the activity again.
  double show(const ShownActivity& activity, const std::string& text) {
    const double now = activity.clock.seconds();
    if (mode() == ProgressMode::log) {
      log_note(text);
      return now + std::clamp(now / 2, 2.0, 60.0);
    }
    const std::string line = one_line(text).substr(0, columns() - 1);
    print("\r" + line + "\x1b[K");
    is_shown_ = true;
    return now + 0.5;
  }

  /// A terminal that has gone is no reason to stop.
  static void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

  void erase() {
    if (!is_shown_) return;
    print("\r\x1b[K");
    is_shown_ = false;
  }

  /// Shows activities that do not update their text.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (activities_.empty() || activities_.back().has_updates) {
        wakes_.wait(lock);
        continue;
      }
      ShownActivity& top = activities_.back();
      const double now = top.clock.seconds();
      if (now >= top.reminder)
        top.reminder = show(top, fmt::format("{} ({:.0f} s)", top.text, now));
      else
        wakes_.wait_for(lock, std::chrono::duration<double>(top.reminder - now));
    }
  }

  std::recursive_mutex mutex_;  // log_note() writes above the line, too
  std::condition_variable_any wakes_;
  std::thread thread_;
  std::vector<ShownActivity> activities_;
  bool is_shown_ = false, ends_ = false;
};

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

Activity::Activity(std::string what) { Screen::get().push(std::move(what)); }
Activity::~Activity() { Screen::get().pop(); }
double Activity::seconds_until_due() const { return Screen::get().seconds_until_due(); }
void Activity::update(const std::string& text) { Screen::get().update(text); }

void above_progress(const std::function<void()>& write) { Screen::get().above(write); }

}  // namespace tessera
