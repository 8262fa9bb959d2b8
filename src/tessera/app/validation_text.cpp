// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <tessera/app/run_report.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {
namespace {

/// The usual metric of a kind of model.
struct Measure {
  std::string_view key, title, format;
  std::function<double(const Validation&)> value;
};

std::optional<double> best_loss(const Config& config) {
  const auto of = row_of(config.data.kind).best_loss;  // over all targets
  return of && !config.training.ignore_index ? of(make_model(config.model)) : std::nullopt;
}

std::optional<Measure> measure_of(const Config& config) {
  switch (config.training.loss) {
    case LossKind::poisson:
      return Measure{"solution_error", "Solution error:", "{:.2e}, relative to the exact solution",
                     [](const Validation& v) { return v.solution_error.value(); }};
    case LossKind::relative_l2:
      return Measure{"relative_error", "Test error:", "{:.2e}, relative, on unseen samples",
                     [](const Validation& v) { return v.loss; }};
    case LossKind::bce:
      if (config.model.kind != ModelKind::vae || config.model.vae.beta != 1) return std::nullopt;
      return Measure{"elbo", "ELBO:", "{:.3f} a sample, on unseen samples",
                     [](const Validation& v) { return -v.loss; }};
    case LossKind::cross_entropy:
      if (const std::optional<double> best = best_loss(config); best && *best > 0)
        return Measure{"percent_above_best", "Above the best:", "{:.2f} %",
                       [best](const Validation& v) { return 100 * (v.loss / *best - 1); }};
      return Measure{"perplexity", "Perplexity:", "{:.3f}, on unseen samples",
                     [](const Validation& v) { return std::exp(v.loss); }};
    case LossKind::mse:
    case LossKind::mae:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string validation_text(const Config& config, const TrainingMetrics& metrics) {
  if (metrics.validations.empty()) return "";
  const Validation& last = metrics.validations.back().result;
  std::string text =
      fmt::format("  {:<16} {:.6f}{}\n", "Validation loss:", last.loss, parts_text(last.parts));
  if (const auto best = metrics.best_validation();
      best && best->epoch != metrics.validations.back().epoch)
    text += fmt::format("  {:<16} {:.6f}, after epoch {}\n", "Smallest of all:", best->result.loss,
                        best->epoch);
  if (const auto best = best_loss(config))
    text += fmt::format("  {:<16} {:.6f}\n", "Best loss:", *best);
  if (const auto measure = measure_of(config))
    text += fmt::format("  {:<16} {}\n", measure->title,
                        fmt::format(fmt::runtime(measure->format), measure->value(last)));
  return text;
}

nlohmann::json validation_json(const Config& config, const TrainingMetrics& metrics) {
  nlohmann::json epochs = nlohmann::json::array(), losses = epochs, values = epochs;
  const auto measure = measure_of(config);
  for (const EpochValidation& one : metrics.validations) {
    epochs.push_back(one.epoch);
    losses.push_back(one.result.loss);
    if (measure) values.push_back(measure->value(one.result));
  }
  nlohmann::json document{
      {"samples", config.data.validation_samples}, {"epochs", epochs}, {"losses", losses}};
  for (const EpochValidation& one : metrics.validations)
    for (const auto& [name, part] : one.result.parts)
      document["parts"][std::string(name)].push_back(part);
  if (measure) document["measure"] = {{"name", measure->key}, {"values", values}};
  if (const auto best = metrics.best_validation())
    document["smallest"] = {{"epoch", best->epoch}, {"loss", best->result.loss}};
  if (const auto best = best_loss(config)) document["best_loss"] = *best;
  return document;
}

}  // namespace tessera
