// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/plan/folded_text.hpp>

namespace tessera {
namespace {

using Texts = std::vector<std::string>;

TEST(FoldedText, JoinsThreeRunsThatCountUpOrDown) {
  EXPECT_EQ(folded({"a", "f(b1, m0)", "f(b2, m0)", "f(b3, m0)", "z"}),
            (Texts{"a", "3 x [f(b1..3, m0)]", "z"}));
  EXPECT_EQ(folded({"g(b9)", "r(b9)", "g(b8)", "r(b8)", "g(b7)", "r(b7)"}),
            (Texts{"3 x [g(b9..7) r(b9..7)]"}));
  EXPECT_EQ(folded({"wait", "wait", "wait"}), (Texts{"3 x [wait]"}));
}

TEST(FoldedText, KeepsTwoRunsAndUnequalSteps) {
  const Texts two{"f(b1)", "f(b2)"}, unequal{"f(b1)", "f(b2)", "f(b4)"},
      other{"f(b1)", "g(b2)", "f(b3)"};
  for (const Texts& texts : {two, unequal, other, Texts{}}) EXPECT_EQ(folded(texts), texts);
}

TEST(FoldedText, FoldsRunsOfRuns) {
  Texts texts;
  for (int m = 0; m < 4; ++m) {
    for (int b = 1; b <= 5; ++b) texts.push_back(fmt::format("f(b{}, m{})", b, m));
    texts.push_back(fmt::format("send(m{})", m));
  }
  EXPECT_EQ(folded(texts), (Texts{"4 x [5 x [f(b1..5, m0..3)] send(m0..3)]"}));
}

}  // namespace
}  // namespace tessera
