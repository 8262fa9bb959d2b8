// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/base/timer.hpp>
#include <tessera/process/log.hpp>

namespace tessera {
namespace {

class LogTest : public testing::Test {
 protected:
  void TearDown() override { set_log_rank(rank_before_); }
  int rank_before_ = log_rank();
};

TEST_F(LogTest, NotesComeFromRankZeroAndErrorsFromAnyRank) {
  testing::internal::CaptureStderr();
  set_log_rank(1);
  log_note("hidden");
  log_warning("hidden");
  log_error("shown\nin one line");
  set_log_rank(0);
  log_note("a note");
  log_warning("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tessera: error: shown in one line\ntessera: a note\ntessera: warning: careful\n");
}

TEST(Timer, RunsForwardAndRestarts) {
  const Timer whole;
  Timer timer;
  while (timer.seconds() < 1e-3) {
  }
  timer.restart();
  const double again = timer.seconds();
  EXPECT_LE(again + 1e-3, whole.seconds());
}

}  // namespace
}  // namespace tessera
