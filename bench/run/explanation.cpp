// SPDX-License-Identifier: Apache-2.0
#include "run/explanation.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tessera::bench {

Prediction prediction_of(const SimulatedStep& step, const std::string& machine,
                         bool oversubscribed) {
  return {machine,     step.step_seconds,    step.products,  step.kernels,
          step.update, step.communication(), step.waiting(), oversubscribed};
}

std::vector<ExplanationLine> explain(const SimulatedStep& step, const Breakdown& measured,
                                     const Plan& plan) {
  const double products = measured.products.mean_rank_seconds;
  std::vector<ExplanationLine> lines{
      {"products", step.products, products, {}, {}},
      {"kernels", step.kernels, measured.compute.mean_rank_seconds - products, {}, {}},
      {"optimizer", step.update, measured.optimizer.mean_rank_seconds, {}, {}},
      {"waiting", step.waiting(), measured.idle.mean_rank_seconds, {}, {}},
      {"between actions", 0, measured.other.mean_rank_seconds, {}, {}}};
  const std::vector<LedgerRow> traffic = step_traffic(plan);
  for (const SimulatedStep::Call& call : step.calls) {
    const auto is_same = [&](const auto& other) {
      return other.axis == call.axis && other.operation == call.operation;
    };
    const auto time = std::find_if(measured.calls.begin(), measured.calls.end(), is_same);
    const auto planned = std::find_if(traffic.begin(), traffic.end(), is_same);
    lines.push_back({fmt::format("{} on {}", name_of(call.operation), call.axis), call.seconds,
                     time == measured.calls.end() ? 0 : time->seconds,
                     planned == traffic.end() ? 0 : planned->calls,
                     planned == traffic.end() ? 0 : planned->payload_bytes});
  }
  const auto difference = [](const ExplanationLine& line) {
    return std::abs(line.measured_seconds - line.predicted_seconds);
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const auto& a, const auto& b) { return difference(a) > difference(b); });
  return lines;
}

}  // namespace tessera::bench
