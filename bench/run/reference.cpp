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
  return {
      {"losses", {{"steps", numbers_json(losses.steps)}, {"epochs", numbers_json(losses.epochs)}}}};
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
  const std::vector<double>& steps = verification.losses.steps;
  const Json wanted = reference.value("losses", Json::object());
  Json loss{{"verdict", nullptr},
            {"tolerance", tolerance},
            {"largest_relative_difference", nullptr},
            {"largest_at_step", nullptr},
            {"epochs", verification.epochs},
            {"steps", steps.size()},
            {"step_losses", numbers_json(steps)},
            {"epoch_losses", numbers_json(verification.losses.epochs)},
            {"reference_step_losses", wanted.value("steps", Json())},
            {"reference_epoch_losses", wanted.value("epochs", Json())},
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
  if (wanted.at("steps").size() != steps.size())
    return verdict("different", "the one-rank run took a different number of steps");
  double largest = 0, there = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Json& one_rank = wanted.at("steps")[i];
    const double value = one_rank.is_null() ? INFINITY : one_rank.get<double>();
    const double difference = std::isfinite(value)
                                  ? std::abs(steps[i] - value) / std::max(std::abs(value), 1e-30)
                                  : INFINITY;
    if (difference < largest || (difference == 0 && i > 0)) continue;
    largest = difference;
    there = value;
    at = i;
  }
  loss["largest_at_step"] = at + 1;
  loss["largest_relative_difference"] = finite(largest);
  if (largest <= tolerance) return verdict("equal");
  return verdict("different", fmt::format("the loss of step {} is {:.8g}, on one rank {:.8g}: "
                                          "relative difference {:.1e}, tolerance {:.0e}",
                                          at + 1, steps[at], there, largest, tolerance));
}

}  // namespace tessera::bench
