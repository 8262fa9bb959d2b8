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

Json numbers_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(finite(value));
  return list;
}

}  // namespace

Json losses_json(const LossCurve& losses) {
  return {{"steps", numbers_json(losses.steps)},
          {"epochs", numbers_json(losses.epochs)},
          {"validations", numbers_json(losses.validations)}};
}

double relative_difference(const Json& value, const Json& wanted) {
  if (value.is_null() || wanted.is_null()) return INFINITY;
  const double right = wanted.get<double>();
  const double relative = std::abs(value.get<double>() - right) / std::max(std::abs(right), 1e-30);
  return std::isfinite(relative) ? relative : INFINITY;
}

LossDifference largest_difference(const std::vector<double>& losses, const Json& reference) {
  LossDifference largest;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Json& wanted = reference.at(i);
    const double relative = relative_difference(losses[i], wanted);
    if (i == 0 || relative > largest.relative)
      largest = {relative, i, losses[i], wanted.is_null() ? INFINITY : wanted.get<double>()};
  }
  return largest;
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

LossVerdict judge_losses(const Verification& verification, const Json& reference,
                         const std::string& reference_name, double tolerance) {
  const LossCurve& losses = verification.losses;
  const std::vector<double>& steps = losses.steps;
  const Json wanted = reference.value("losses", Json::object());
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
            {"reference_step_losses", wanted.value("steps", Json())},
            {"reference_epoch_losses", wanted.value("epochs", Json())},
            {"reference_validation_losses", wanted.value("validations", Json())},
            {"reference", reference_name},
            {"reference_ranks", reference.value("ranks", Json())},
            {"problem", reference.value("problem", Json())}};
  const auto verdict = [&](const char* word, const std::string& problem = "") {
    loss["verdict"] = word;
    return LossVerdict{loss, problem};
  };
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!std::isfinite(steps[i]))
      return verdict("not_finite", fmt::format("the loss of step {} is not finite", i + 1));
  if (wanted.empty()) return verdict("no_reference");
  const Json validations = wanted.value("validations", Json::array());
  // A reference that is kept may have been asked for more steps than this case.
  if (wanted.at("steps").size() < steps.size() || validations.size() < losses.validations.size())
    return verdict("different", "the reference has fewer steps or validations");
  const LossDifference trained = largest_difference(steps, wanted.at("steps")),
                       unseen = largest_difference(losses.validations, validations);
  const bool is_unseen = unseen.relative > trained.relative;
  const LossDifference& worst = is_unseen ? unseen : trained;
  const std::size_t step = is_unseen ? losses.validated_at[worst.at] : worst.at + 1;
  loss["largest_at_step"] = step;
  loss["largest_relative_difference"] = finite(worst.relative);
  if (worst.relative <= tolerance) return verdict("equal");
  return verdict("different",
                 fmt::format("the {} {} is {:.8g}, on {} {:.8g}: relative difference {:.1e}, "
                             "tolerance {:.0e}",
                             is_unseen ? "validation loss after step" : "loss of step", step,
                             worst.value, counted(reference.value("ranks", Size{1}), "rank"),
                             worst.wanted, worst.relative, tolerance));
}

}  // namespace tessera::bench
