// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("mesh", ""), 4);
  EXPECT_EQ(edit_distance("", "mesh"), 4);
  EXPECT_EQ(edit_distance("Mesh", "mesh"), 0);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
}

TEST(SuggestNearest, FindsTheMisspelledKeyAndRefusesFarOnes) {
  const std::vector<std::string> keys = {"epochs", "batch_size", "learning_rate", "seed"};
  EXPECT_EQ(suggest_nearest("epoch", keys), "epochs");
  EXPECT_EQ(suggest_nearest("laerning_rate", keys), "learning_rate");
  EXPECT_EQ(suggest_nearest("sede", keys), "seed");
  EXPECT_EQ(suggest_nearest("completely_else", keys), std::nullopt);
  EXPECT_EQ(suggest_nearest("", keys), std::nullopt);
  EXPECT_EQ(suggest_nearest("x", std::vector<std::string>{}), std::nullopt);
  const std::array<std::string_view, 2> near = {"relu", "gelu"};
  EXPECT_EQ(suggest_nearest("elu", near), "relu");
  const std::array<std::string_view, 1> short_key = {"lr"};
  EXPECT_EQ(suggest_nearest("xy", short_key), std::nullopt);
}

TEST(SuggestNearest, KnowsNamesOfOtherToolsOnly) {
  const std::array<std::string_view, 4> strategies = {"data", "zero1", "fsdp", "tensor"};
  EXPECT_EQ(suggest_nearest("zero3", strategies), "fsdp");
  EXPECT_EQ(suggest_nearest("ZeRO_3", strategies), "fsdp");
  EXPECT_EQ(suggest_nearest("tp_size", strategies), "tensor");
  EXPECT_EQ(suggest_nearest("zero2", strategies), "zero1");
  const std::array<std::string_view, 2> others = {"model", "zero1"};
  EXPECT_EQ(suggest_nearest("tp", others), "model");
  EXPECT_EQ(suggest_nearest("zero3", others), "zero1");
}

// Comparing words of a megabyte would take hours.
TEST(SuggestNearest, IgnoresVeryLongWords) {
  const std::string word(1'000'000, 'a');
  const std::vector<std::string> keys = {"epochs", word};
  EXPECT_EQ(suggest_nearest(word, keys), std::nullopt);
  const std::vector<std::string> long_key = {std::string(200, 'a')};
  EXPECT_EQ(suggest_nearest(std::string(202, 'a'), long_key), long_key.front());
}

TEST(Excerpt, QuotesBeginAndEndOfALongText) {
  EXPECT_EQ(excerpt("short"), "short");
  EXPECT_EQ(excerpt(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(excerpt("abcdefghijklm", 10), "abcdef...klm (13 bytes)");
  // A character of several bytes is not cut in two.
  EXPECT_EQ(excerpt("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", 7), "\u00e4\u00e4...\u00e4 (12 bytes)");
  const std::string key(20'000, 'k'), value(1'000'000, 'v');
  const std::string message = ConfigError(key, value, "must be one of " + value).what();
  EXPECT_LT(message.size(), 1300u);
  EXPECT_EQ(message.find("kkk"), 0u);
  EXPECT_NE(message.find("(1000000 bytes)"), std::string::npos);
}

TEST(Text, JoinsAndSplits) {
  const std::vector<std::string> parts = {"a", "", "b"};
  EXPECT_EQ(join(parts), "a, , b");
  EXPECT_EQ(join(parts, "|"), "a||b");
  EXPECT_EQ(join(std::vector<std::string_view>{}), "");
  EXPECT_EQ(split_text("a||b", '|'), parts);
  EXPECT_EQ(split_text("", ','), std::vector<std::string>{""});
  EXPECT_EQ(trim(" \t x y\n"), "x y");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(one_line("first\r\n  second\ttab\n"), "first   second tab");
}

TEST(Text, PrintsQuantitiesForPeople) {
  constexpr Size least = std::numeric_limits<Size>::min(), most = std::numeric_limits<Size>::max();
  const std::vector<std::pair<std::string, std::string>> shown{
      {human_bytes(385), "385 B"},
      {human_bytes(1023), "1023 B"},
      {human_bytes(1536), "1.50 KiB"},
      {human_bytes(1024 * 1024 - 1), "1.00 MiB"},
      {human_bytes(Size{2} << 30), "2.00 GiB"},
      {human_bytes(-2048), "-2.00 KiB"},
      {human_bytes(most), "8.00 EiB"},
      {with_thousands(999), "999"},
      {with_thousands(1000), "1,000"},
      {with_thousands(-999), "-999"},
      {with_thousands(-1234567), "-1,234,567"},
      {with_thousands(least), "-9,223,372,036,854,775,808"},
      {human_seconds(0), "0 s"},
      {human_seconds(850e-9), "850 ns"},
      {human_seconds(12.34e-6), "12.3 us"},
      {human_seconds(4.5678e-3), "4.57 ms"},
      {human_seconds(0.9999), "1.00 s"},
      {human_seconds(1234.5), "1234 s"},
      {rank_list(std::vector{2}), "rank 2"},
      {rank_list(std::vector{0, 1}), "ranks 0,1"},
      {rank_list(std::vector{0, 1, 2, 3, 7}), "ranks 0-3,7"},
      {rank_list(std::vector{1, 3, 4, 9, 10, 11}), "ranks 1,3,4,9-11"},
      {number_ranges(std::vector<int>{}), ""},
      {number_ranges(std::vector{0, 1}), "0-1"},
      {number_ranges(std::vector{0, 1, 2, 5, 7, 8}), "0-2,5,7-8"},
  };
  for (const auto& [text, expected] : shown) EXPECT_EQ(text, expected);
}

TEST(RanksByText, GroupsRanksWithTheSameText) {
  using Groups = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(ranks_by_text({}), Groups{});
  EXPECT_EQ(ranks_by_text({{1, "b"}, {2, "a"}, {5, "b"}}),
            (Groups{{"ranks 1,5", "b"}, {"rank 2", "a"}}));
}

}  // namespace
}  // namespace tessera
