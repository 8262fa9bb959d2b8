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

/// Of two losses, relative to the reference; infinite where one of them is not finite.
double difference(const Json& mine, const Json& reference) {
  if (mine.is_null() || reference.is_null()) return INFINITY;
  const double wanted = reference.get<double>();
  const double scale = std::max(std::abs(wanted), 1e-30);
  return std::abs(mine.get<double>() - wanted) / scale;
}

}  // namespace

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

std::string reference_key(const Config& reference) {
  return fmt::format("{:08x}", hash_of(config_as_json(reference)));
}

Json run_reference(const Config& reference, const Communicator& world, const Limits& limits,
                   const CheckTime& check_time) {
  const Size bytes = plan_of(reference, 1).memory(0).total();
  if (limits.memory_bytes && bytes > *limits.memory_bytes)
    return {{"problem", fmt::format("one rank would need {}, the limit is {}", human_bytes(bytes),
                                    human_bytes(*limits.memory_bytes))}};
  const Communicator alone = world.alone("reference");
  try {
    return reference.model.dtype == DType::float64
               ? train_alone<double>(reference, alone, check_time)
               : train_alone<float>(reference, alone, check_time);
  } catch (...) {
    const Outcome outcome = describe_current_exception();
    if (outcome.code != ExitCode::out_of_memory) throw;
    return {{"problem", "one rank: " + outcome.message}};
  }
}

Json compare_losses(const Verification& verification, const Json& reference,
                    const std::string& reference_name, double tolerance) {
  const Json steps = numbers_json(verification.losses.steps);
  Json loss{{"verdict", nullptr},
            {"tolerance", tolerance},
            {"largest_relative_difference", nullptr},
            {"largest_at_step", nullptr},
            {"epochs", verification.epochs},
            {"steps", steps.size()},
            {"step_losses", steps},
            {"epoch_losses", numbers_json(verification.losses.epochs)},
            {"reference_step_losses", nullptr},
            {"reference_epoch_losses", nullptr},
            {"reference", reference_name},
            {"problem", nullptr}};
  const bool is_finite =
      std::none_of(steps.begin(), steps.end(), [](const Json& v) { return v.is_null(); });
  if (!is_finite) loss["verdict"] = "not_finite";
  if (reference.contains("problem")) {
    loss["problem"] = reference.at("problem");
    if (is_finite) loss["verdict"] = "no_reference";
    return loss;
  }
  const Json& wanted = reference.at("losses").at("steps");
  loss["reference_step_losses"] = wanted;
  loss["reference_epoch_losses"] = reference.at("losses").at("epochs");
  if (!is_finite) return loss;
  double largest = wanted.size() == steps.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(steps.size(), wanted.size()); ++i) {
    const double here = difference(steps[i], wanted[i]);
    if (here < largest || (here == 0 && i > 0)) continue;
    largest = here;
    loss["largest_at_step"] = i + 1;
  }
  loss["largest_relative_difference"] = finite(largest);
  loss["verdict"] = largest <= tolerance ? "equal" : "different";
  return loss;
}

std::string loss_problem(const Json& loss) {
  const std::string verdict = loss.at("verdict");
  if (verdict == "not_finite") {
    const Json& steps = loss.at("step_losses");
    const auto first = std::find(steps.begin(), steps.end(), Json());
    return fmt::format("the loss of step {} is not finite", first - steps.begin() + 1);
  }
  if (verdict != "different") return "";
  if (loss.at("largest_relative_difference").is_null())
    return "the one-rank run took a different number of steps";
  const auto step = loss.at("largest_at_step").get<std::size_t>();
  return fmt::format(
      "the loss of step {} is {:.8g}, on one rank {:.8g}: relative difference {:.1e}, "
      "tolerance {:.0e}",
      step, loss.at("step_losses")[step - 1].get<double>(),
      loss.at("reference_step_losses")[step - 1].get<double>(),
      loss.at("largest_relative_difference").get<double>(), loss.at("tolerance").get<double>());
}

}  // namespace tessera::bench
