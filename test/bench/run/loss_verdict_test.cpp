// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "bench/results/results_support.hpp"
#include "results/result_parts.hpp"
#include "run/references.hpp"

namespace tessera::bench {
namespace {

LossVerdict compare(std::vector<double> mine, std::vector<double> reference_steps) {
  Verification verification;
  verification.losses.steps = std::move(mine);
  verification.losses.epochs = {1};
  verification.epochs = 1;
  return judge_losses(verification,
                      {Reference{{std::move(reference_steps), {1.0}}, "data=1", 1, {}, 0}}, "r",
                      1e-5);
}

TEST(Losses, EqualWithinTheTolerance) {
  const auto loss = compare({2.0, 1.0 + 5e-6}, {2.0, 1.0});
  EXPECT_EQ(loss.loss.verdict, "equal");
  EXPECT_NEAR(loss.loss.largest_relative_difference.value(), 5e-6, 1e-10);
  EXPECT_EQ(loss.problem, "");
}

TEST(Losses, DifferentBeyondIt) {
  const auto loss = compare({2.0, 1.1, 0.5}, {2.0, 1.0, 0.5});
  EXPECT_EQ(loss.loss.verdict, "different");
  EXPECT_EQ(loss.loss.largest_at_step, 2);
  EXPECT_EQ(loss.problem,
            "the loss of step 2 is 1.1, on 1 rank 1: relative difference 1.0e-01, tolerance 1e-05");
}

TEST(Losses, ANaNIsNeverEqual) {
  const auto loss = compare({2.0, NAN, NAN}, {2.0, NAN, NAN});
  EXPECT_EQ(loss.loss.verdict, "not_finite");
  EXPECT_EQ(loss.problem, "the loss of step 2 is not finite");
  const auto only_there = compare({2.0, 1.0}, {2.0, NAN});
  EXPECT_EQ(only_there.loss.verdict, "different");
  EXPECT_NE(only_there.problem, "");
}

TEST(Losses, MoreStepsThanThoseOfTheReferenceAreDifferent) {
  EXPECT_EQ(compare({2.0}, {2.0, 1.0}).loss.verdict, "equal");
  const auto loss = compare({2.0, 1.0}, {2.0});
  EXPECT_EQ(loss.loss.verdict, "different");
  EXPECT_EQ(loss.problem, "the reference has fewer steps or validations");
}

TEST(Losses, ValidationLossesAreComparedToo) {
  Verification verification;
  verification.losses = {{2.0, 1.0, 0.5, 0.25}, {1.5, 0.375}, {1.7, 0.8}, {2, 4}};
  const auto judged = [&](const std::vector<double>& validations) {
    return judge_losses(verification,
                        {Reference{{{2.0, 1.0, 0.5, 0.25}, {}, validations}, "data=1", 1, {}, 0}},
                        "r", 1e-5);
  };
  EXPECT_EQ(judged({1.7, 0.8}).loss.verdict, "equal");
  const auto loss = judged({1.7, 0.4});
  EXPECT_EQ(loss.loss.verdict, "different");
  EXPECT_EQ(loss.loss.largest_at_step, 4);
  EXPECT_EQ(loss.problem,
            "the validation loss after step 4 is 0.8, on 1 rank 0.4: relative difference "
            "1.0e+00, tolerance 1e-05");
  EXPECT_EQ(judged({1.7}).loss.verdict, "different");
}

TEST(Losses, NameAValidationLossThatIsNotFinite) {
  Verification verification;
  verification.losses = {{2.0, 1.0}, {1.5}, {NAN}, {2}};
  const auto loss = judge_losses(
      verification, {Reference{{{2.0, 1.0}, {}, {NAN}}, "data=1", 1, {}, 0}}, "r", 1e-5);
  EXPECT_EQ(loss.loss.verdict, "not_finite");
  EXPECT_EQ(loss.problem, "the validation loss after step 2 is not finite");
}

TEST(Losses, WithoutAReferenceTheVerdictSaysSo) {
  Verification verification;
  verification.losses = {{1.0}, {1.0}};
  const auto loss = judge_losses(verification, {.problem = "too large"}, "r", 1e-5);
  EXPECT_EQ(loss.loss.verdict, "no_reference");
  EXPECT_EQ(loss.loss.problem, "too large");
  EXPECT_EQ(loss.problem, "");
}

TEST(Documents, AResultIsReadAsItWasWritten) {
  const CaseResult written = fake_result({});
  EXPECT_EQ(nlohmann::json(nlohmann::json(written).get<CaseResult>()), nlohmann::json(written));
  Reference reference;
  reference.losses = LossCurve{{1.5, NAN}, {1.25}, {}};
  reference.mesh = "data=1";
  reference.asked_steps = 2;
  const Reference read = nlohmann::json(reference).get<Reference>();
  EXPECT_EQ(nlohmann::json(read), nlohmann::json(reference));
  EXPECT_TRUE(read.has_steps(2));
  EXPECT_FALSE(read.has_steps(3));
  EXPECT_FALSE(read.has_steps({})) << "all";
}

}  // namespace
}  // namespace tessera::bench
