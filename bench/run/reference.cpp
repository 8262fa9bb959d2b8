// SPDX-License-Identifier: Apache-2.0
#include "run/reference.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <tessera/base/outcome.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>

#include "results/documents.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json numbers_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(finite(value));
  return list;
}

template <class T>
Json train_alone(const Config& config, const Communicator& alone, const CheckTime& check_time) {
  CaseRun<T> run(config, alone);
  const LossCurve losses = run.train(check_time).losses;
  return {{"losses",
           {{"steps", numbers_json(losses.steps)},
            {"epochs", numbers_json(losses.epochs)},
            {"validations", numbers_json(losses.validations)}}}};
}

/// The same training on one rank: replicated, in one microbatch, nothing overlapped.
Config reference_config(const Config& config) {
  Config reference = config;
  TrainingConfig& training = reference.training;
  const DistributedConfig given = training.distributed;
  training.microbatches = 1;
  training.distributed = DistributedConfig{};
  training.distributed.world_size = 1;
  training.distributed.mesh_shape = {1};
  training.distributed.mesh_axis_names = {"data"};
  training.distributed.gradient_reduce_type = given.gradient_reduce_type;
  training.distributed.mixed_precision = given.mixed_precision;
  return reference;
}

/// Where two curves of losses are furthest apart.
struct Difference {
  double relative = 0;
  std::size_t at = 0;  ///< counted from 0
  double value = 0, wanted = 0;
};

/// `one_rank` has null for what is not finite, from which everything is infinitely far.
Difference largest_difference(const std::vector<double>& losses, const Json& one_rank) {
  Difference largest;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double wanted = one_rank.at(i).is_null() ? INFINITY : one_rank.at(i).get<double>();
    double relative = std::abs(losses[i] - wanted) / std::max(std::abs(wanted), 1e-30);
    if (!std::isfinite(relative)) relative = INFINITY;
    if (i == 0 || relative > largest.relative) largest = {relative, i, losses[i], wanted};
  }
  return largest;
}

}  // namespace

std::string reference_name(const Config& config) {
  return fmt::format("references/{:08x}.json", hash_of(config_as_json(reference_config(config))));
}

Json find_reference(const Config& config, const ResultsDirectory& results,
                    const Communicator& world, const Limits& limits, const Timer& clock) {
  const std::string name = reference_name(config);
  if (auto known = results.read(name)) return *known;
  const Config reference = reference_config(config);
  const auto check_time = [&] {
    if (clock.seconds() > limits.case_seconds)
      throw Error(ExitCode::timeout,
                  fmt::format("its one-rank run took longer than the limit of {:g} s",
                              limits.case_seconds));
  };
  Json made;
  const Outcome outcome = outcome_of([&] {
    const Size bytes = plan_of(reference, 1).memory(0).total();
    if (limits.memory_bytes && bytes > *limits.memory_bytes)
      throw Error(ExitCode::out_of_memory,
                  fmt::format("would need {}, the limit is {}", human_bytes(bytes),
                              human_bytes(*limits.memory_bytes)));
    const Communicator alone = world.alone("reference");
    made = with_compute_type(compute_type(reference), [&](auto t) {
      return train_alone<decltype(t)>(reference, alone, check_time);
    });
    results.write(name, made);
  });
  if (outcome.code == ExitCode::out_of_memory) return {{"problem", "one rank: " + outcome.message}};
  if (!outcome.failed()) return made;
  return {{"error", outcome.message}, {"code", static_cast<int>(outcome.code)}};
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
  if (wanted.at("steps").size() != steps.size() || validations.size() != losses.validations.size())
    return verdict("different", "the one-rank run took a different number of steps or validations");
  const Difference trained = largest_difference(steps, wanted.at("steps")),
                   unseen = largest_difference(losses.validations, validations);
  const bool is_unseen = unseen.relative > trained.relative;
  const Difference& worst = is_unseen ? unseen : trained;
  const std::size_t step = is_unseen ? losses.validated_at[worst.at] : worst.at + 1;
  loss["largest_at_step"] = step;
  loss["largest_relative_difference"] = finite(worst.relative);
  if (worst.relative <= tolerance) return verdict("equal");
  return verdict("different",
                 fmt::format("the {} {} is {:.8g}, on one rank {:.8g}: relative difference {:.1e}, "
                             "tolerance {:.0e}",
                             is_unseen ? "validation loss after step" : "loss of step", step,
                             worst.value, worst.wanted, worst.relative, tolerance));
}

}  // namespace tessera::bench
