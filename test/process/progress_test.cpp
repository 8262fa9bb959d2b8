// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include <tessera/base/timer.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

class ProgressTest : public testing::Test {
 protected:
  void TearDown() override {
    set_log_rank(rank_before_);
    set_progress_mode("none");
  }
  int rank_before_ = log_rank();
};

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// Returns what `show` writes to stderr. It returns whether its calls came in time; if a busy
/// machine stopped them for too long, they are repeated.
std::string shown_by(const std::function<bool()>& show) {
  for (;;) {
    testing::internal::CaptureStderr();
    const bool in_time = show();
    const std::string shown = testing::internal::GetCapturedStderr();
    if (in_time) return shown;
  }
}

TEST_F(ProgressTest, ALineIsRewrittenAndGivesWayToMessages) {
  set_log_rank(0);
  set_progress_mode("line");
  const auto show = [] {
    const Timer timer;
    Activity activity("training");
    activity.update("too early");
    const bool in_time = timer.seconds() < 0.5;
    wait(0.5);
    activity.update("step 1\nof 2");
    const Activity inner("the line is not free");
    log_note("a note");
    const Activity validation("validating");
    return in_time;
  };
  EXPECT_EQ(shown_by(show),
            "\rtraining\x1b[K\rstep 1 of 2\x1b[K\r\x1b[Ktessera: a note\n"
            "\rvalidating\x1b[K\r\x1b[K");
}

TEST_F(ProgressTest, ALogHasItsFirstLineAfterTwoSecondsAndFewerLater) {
  set_log_rank(0);
  set_progress_mode("log");
  const auto show = [] {
    Timer timer;
    Activity activity("training");
    const double due = activity.seconds_until_due();
    EXPECT_LE(due, 2);
    EXPECT_GE(due + timer.seconds(), 2);
    activity.update("too early");
    const bool in_time = timer.seconds() < 2;
    wait(2.01);
    EXPECT_EQ(activity.seconds_until_due(), 0);
    timer.restart();
    activity.update("step 1");
    activity.update("not yet");
    return in_time && timer.seconds() < 2;
  };
  EXPECT_EQ(shown_by(show), "tessera: step 1\n");
}

TEST_F(ProgressTest, OnlyRankZeroShowsAndNothingIfNotWanted) {
  set_progress_mode("log");
  set_log_rank(1);
  {
    const Activity activity("hidden");
    EXPECT_TRUE(std::isinf(activity.seconds_until_due()));
  }
  set_log_rank(0);
  set_progress_mode("none");
  const Activity activity("hidden");
  EXPECT_TRUE(std::isinf(activity.seconds_until_due()));
}

/// Returns the seconds until an activity is shown with this file as standard error.
double first_due_with_stderr(const char* path) {
  const int before = dup(STDERR_FILENO), file = open(path, O_RDWR | O_NOCTTY);
  dup2(file, STDERR_FILENO);
  const double seconds = Activity("training").seconds_until_due();
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  return seconds;
}

TEST_F(ProgressTest, OnlyATerminalGetsALineThatIsRewritten) {
  set_log_rank(0);
  set_progress_mode("auto");
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
    GTEST_SKIP() << "no pseudo-terminals here";
  EXPECT_LE(first_due_with_stderr(ptsname(terminal)), 0.5);
  EXPECT_GT(first_due_with_stderr("/dev/null"), 1);
  close(terminal);
}

TEST_F(ProgressTest, UnknownModesAreRejected) {
  EXPECT_EQ(test::error_of([] { set_progress_mode("lines"); }),
            "--progress = lines: must be one of auto, line, log, none; did you mean line?");
}

}  // namespace
}  // namespace tessera
