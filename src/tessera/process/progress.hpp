// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <tessera/base/names.hpp>
#include <tessera/base/timer.hpp>

namespace tessera {

/// How rank 0 shows on stderr what a long run is doing.
enum class ProgressMode : std::uint8_t {
  automatic,  ///< `line` if stderr is a terminal; else `log`, as under a launcher
  line,       ///< one line, rewritten in place
  log,        ///< a line now and then: the first after 2 s, then after longer and longer intervals
  none,
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<ProgressMode>{"auto", "line", "log",
                                                                        "none"};

/// Sets the mode of this process to `option` (--progress), or TESSERA_PROGRESS if it is empty, or
/// auto. Throws ConfigError. Until it is called, nothing is shown.
void set_progress_mode(const std::string& option = "");

/// Work that may take long, from the constructor to the destructor: "reading samples". With a line,
/// rank 0 shows it at once, unless the line shows an activity that began earlier.
class Activity {
 public:
  explicit Activity(const std::string& what);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  /// Returns the seconds until update() shows its text; 0 if it would now, infinity if never.
  double seconds_until_due() const;
  /// Shows the text if it is due.
  void update(const std::string& text);

 private:
  Timer clock_;
  double due_ = 0;  ///< clock time at which an update is shown next
};

/// Runs `write`, which prints to a standard stream, after removing the progress line.
void above_progress(const std::function<void()>& write);

}  // namespace tessera
