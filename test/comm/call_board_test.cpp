// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <gtest/gtest.h>

#include <tessera/base/text.hpp>
#include <tessera/comm/detail/call_board.hpp>

namespace tessera {
namespace {

TEST(CallBoard, ShowsTheCallAndThenThatItIsOver) {
  CallBoard board;
  EXPECT_EQ(board.read().version, 0U);
  EXPECT_FALSE(board.read().inside);
  CallNote note;
  note.sequence = 5;
  note.file = "x.cpp";
  board.enter(note);
  const CallBoard::Reading in = board.read();
  EXPECT_TRUE(in.inside);
  EXPECT_EQ(in.note.sequence, 5U);
  EXPECT_STREQ(in.note.file, "x.cpp");
  board.leave();
  const CallBoard::Reading out = board.read();
  EXPECT_FALSE(out.inside);
  EXPECT_EQ(out.note.sequence, 5U) << "the last call stays readable";
  EXPECT_NE(out.version, in.version);
  board.enter(note);
  EXPECT_NE(board.read().version, in.version) << "the same call again is another one";
}

TEST(CallBoard, NeverShowsHalfOfACall) {
  CallBoard board;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= 200000; ++i) {
      CallNote note;
      note.group = note.sequence = i;
      note.tag = static_cast<std::int32_t>(i);
      board.enter(note);
      board.leave();
    }
  });
  for (std::uint64_t last = 0; last < 200000;) {
    const CallBoard::Reading reading = board.read();
    ASSERT_EQ(reading.note.group, reading.note.sequence);
    ASSERT_EQ(reading.note.tag, static_cast<std::int32_t>(reading.note.sequence));
    ASSERT_GE(reading.note.sequence, last);
    last = reading.note.sequence;
  }
  writer.join();
}

TEST(RankList, NamesRuns) {
  const auto text = [](std::vector<int> ranks) { return rank_list(ranks); };
  EXPECT_EQ(text({2}), "rank 2");
  EXPECT_EQ(text({0, 1}), "ranks 0,1");
  EXPECT_EQ(text({0, 1, 2, 3, 7}), "ranks 0-3,7");
  EXPECT_EQ(text({1, 3, 4, 9, 10, 11}), "ranks 1,3,4,9-11");
}

}  // namespace
}  // namespace tessera
