// SPDX-License-Identifier: Apache-2.0
#include "run/explanation.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json line(const std::string& part, double predicted, double measured) {
  return {{"part", part}, {"predicted_seconds", predicted}, {"measured_seconds", measured}};
}

double difference(const Json& part) {
  return std::abs(part.at("measured_seconds").get<double>() -
                  part.at("predicted_seconds").get<double>());
}

}  // namespace

Json prediction_json(const SimulatedStep& step, const std::string& machine, bool oversubscribed) {
  return {{"machine", machine},
          {"step_seconds", step.step_seconds},
          {"product_seconds", step.products},
          {"kernel_seconds", step.kernels},
          {"optimizer_seconds", step.update},
          {"communication_seconds", step.communication()},
          {"idle_seconds", step.waiting()},
          {"oversubscribed", oversubscribed}};
}

Json explanation_json(const SimulatedStep& step, const Breakdown& measured, const Plan& plan) {
  const double products = measured.products.mean_rank_seconds;
  std::vector<Json> parts{
      line("products", step.products, products),
      line("kernels", step.kernels, measured.compute.mean_rank_seconds - products),
      line("optimizer", step.update, measured.optimizer.mean_rank_seconds),
      line("waiting", step.waiting(), measured.idle.mean_rank_seconds),
      line("between actions", 0, measured.other.mean_rank_seconds)};
  const std::vector<LedgerRow> traffic = step_traffic(plan);
  for (const SimulatedStep::Call& call : step.calls) {
    const auto is_same = [&](const CallTime& time) {
      return time.axis == call.axis && time.operation == call.operation;
    };
    const auto time = std::find_if(measured.calls.begin(), measured.calls.end(), is_same);
    Json part = line(fmt::format("{} on {}", name_of(call.operation), call.axis), call.seconds,
                     time == measured.calls.end() ? 0 : time->seconds);
    part.update({{"calls", 0}, {"payload_bytes", 0}});
    for (const LedgerRow& planned : traffic)
      if (planned.axis == call.axis && planned.operation == call.operation)
        part.update({{"calls", planned.calls}, {"payload_bytes", planned.payload_bytes}});
    parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Json& a, const Json& b) { return difference(a) > difference(b); });
  return parts;
}

}  // namespace tessera::bench
