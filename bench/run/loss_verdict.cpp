// SPDX-License-Identifier: Apache-2.0
#include "run/loss_verdict.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

/// The step or validation at which losses differ most.
struct LossDifference {
  double relative = 0;
  std::size_t at = 0;  ///< counted from 0
  double value = 0, wanted = 0;
};

/// `reference` has at least as many losses.
LossDifference largest_difference(const std::vector<double>& losses,
                                  const std::vector<double>& reference) {
  LossDifference largest;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double relative = relative_difference(losses[i], reference[i]);
    if (i == 0 || relative > largest.relative) largest = {relative, i, losses[i], reference[i]};
  }
  return largest;
}

}  // namespace

double relative_difference(double value, double wanted) {
  const double relative = std::abs(value - wanted) / std::max(std::abs(wanted), 1e-30);
  return std::isfinite(relative) ? relative : INFINITY;
}

double loss_tolerance(const Config& config, double asked) {
  if (config.training.numerics.reproducible) return asked;
  switch (compute_type(config)) {
    case DType::bfloat16:
      return std::max(asked, 0x1p-8);
    case DType::float16:
      return std::max(asked, 0x1p-11);
    default:
      return asked;
  }
}

LossVerdict judge_losses(const Verification& verification, const FoundReference& reference,
                         const std::string& reference_name, double tolerance) {
  const LossCurve& losses = verification.losses;
  const std::vector<double>& steps = losses.steps;
  LossResult loss;
  loss.tolerance = tolerance;
  loss.epochs = verification.epochs;
  loss.steps = static_cast<Size>(steps.size());
  loss.step_losses = steps;
  loss.epoch_losses = losses.epochs;
  loss.validation_losses = losses.validations;
  loss.validated_at_steps = losses.validated_at;
  loss.reference = reference_name;
  loss.problem = reference.problem;
  if (reference.losses) {
    loss.reference_step_losses = reference.losses->steps;
    loss.reference_epoch_losses = reference.losses->epochs;
    loss.reference_validation_losses = reference.losses->validations;
    loss.reference_ranks = reference.ranks;
  }
  const auto verdict = [&](const char* word, const std::string& problem = "") {
    loss.verdict = word;
    return LossVerdict{loss, problem};
  };
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!std::isfinite(steps[i]))
      return verdict("not_finite", fmt::format("the loss of step {} is not finite", i + 1));
  if (!reference.losses) return verdict("no_reference");
  const LossCurve& wanted = *reference.losses;
  // A stored reference may have more steps than this case asks for.
  if (wanted.steps.size() < steps.size() || wanted.validations.size() < losses.validations.size())
    return verdict("different", "the reference has fewer steps or validations");
  const LossDifference trained = largest_difference(steps, wanted.steps),
                       unseen = largest_difference(losses.validations, wanted.validations);
  const bool is_unseen = unseen.relative > trained.relative;
  const LossDifference& worst = is_unseen ? unseen : trained;
  const std::size_t step = is_unseen ? losses.validated_at[worst.at] : worst.at + 1;
  loss.largest_at_step = static_cast<Size>(step);
  loss.largest_relative_difference = worst.relative;
  if (worst.relative <= tolerance) return verdict("equal");
  return verdict(
      "different",
      fmt::format("the {} {} is {:.8g}, on {} {:.8g}: relative difference {:.1e}, tolerance {:.0e}",
                  is_unseen ? "validation loss after step" : "loss of step", step, worst.value,
                  counted(reference.ranks, "rank"), worst.wanted, worst.relative, tolerance));
}

}  // namespace tessera::bench
