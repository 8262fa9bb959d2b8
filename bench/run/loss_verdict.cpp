// SPDX-License-Identifier: Apache-2.0
#include "run/loss_verdict.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/documents.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

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
  const auto wanted_json = [&](std::vector<double> LossCurve::*list) {
    return reference.losses ? numbers_json((*reference.losses).*list) : Json();
  };
  Json loss{{"verdict", nullptr},
            {"tolerance", tolerance},
            {"largest_relative_difference", nullptr},
            {"largest_at_step", nullptr},
            {"epochs", verification.epochs},
            {"steps", steps.size()},
            {"step_losses", numbers_json(steps)},
            {"epoch_losses", numbers_json(losses.epochs)},
            {"validation_losses", numbers_json(losses.validations)},
            {"validated_at_steps", losses.validated_at},
            {"reference_step_losses", wanted_json(&LossCurve::steps)},
            {"reference_epoch_losses", wanted_json(&LossCurve::epochs)},
            {"reference_validation_losses", wanted_json(&LossCurve::validations)},
            {"reference", reference_name},
            {"reference_ranks", reference.losses ? Json(reference.ranks) : Json()},
            {"problem", reference.problem.empty() ? Json() : Json(reference.problem)}};
  const auto verdict = [&](const char* word, const std::string& problem = "") {
    loss["verdict"] = word;
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
  loss["largest_at_step"] = step;
  loss["largest_relative_difference"] = finite(worst.relative);
  if (worst.relative <= tolerance) return verdict("equal");
  return verdict(
      "different",
      fmt::format("the {} {} is {:.8g}, on {} {:.8g}: relative difference {:.1e}, tolerance {:.0e}",
                  is_unseen ? "validation loss after step" : "loss of step", step, worst.value,
                  counted(reference.ranks, "rank"), worst.wanted, worst.relative, tolerance));
}

}  // namespace tessera::bench
