// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string>

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

std::string written(std::FILE* file) {
  std::rewind(file);
  std::array<char, 256> text{};
  const std::size_t size = std::fread(text.data(), 1, text.size(), file);
  return std::string(text.data(), size);
}

TEST_F(LogTest, ProgressRewritesOneLineAndErasesIt) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    ProgressLine disabled(false, file, 0);
    EXPECT_FALSE(disabled.due());
    disabled.update("x");
    ProgressLine line(true, file, 0);
    line.update("1/2");
    line.update("2/2");
  }
  {
    ProgressLine slow(true, file, 1e6);
    slow.update("first");
    EXPECT_FALSE(slow.due());
    slow.update("second");
  }
  EXPECT_EQ(written(file), "\r\x1b[K1/2\r\x1b[K2/2\r\x1b[K\r\x1b[Kfirst\r\x1b[K");
  std::fclose(file);
}

TEST(Timer, RunsForwardAndRestarts) {
  Timer timer;
  while (timer.seconds() < 1e-3) {
  }
  const double before = timer.seconds();
  timer.restart();
  EXPECT_GE(before, 1e-3);
  EXPECT_LT(timer.seconds(), before + 1);
}

}  // namespace
}  // namespace tessera
