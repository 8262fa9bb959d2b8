// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/app/training_lines.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

/// Returns "0:07", "12:30" or "3:04:05".
std::string clock_text(double seconds) {
  const auto whole = static_cast<Size>(seconds + 0.5);
  constexpr Size minute = 60, hour = 3600;
  const Size hours = whole / hour, minutes = whole % hour / minute, rest = whole % minute;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest)
                   : fmt::format("{}:{:02}", minutes, rest);
}

std::string rate_text(double flops_per_second, std::optional<double> peak) {
  constexpr double giga = 1e9, tera = 1e12;
  const std::string rate = flops_per_second < tera
                               ? fmt::format("{:.3g} GFLOP/s", flops_per_second / giga)
                               : fmt::format("{:.3g} TFLOP/s", flops_per_second / tera);
  if (!peak) return rate;
  return fmt::format("{} ({:.0f} % of peak)", rate, 100 * flops_per_second / *peak);
}

}  // namespace

std::string parts_text(const std::vector<NamedNumber>& parts) {
  std::vector<std::string> texts;
  for (const auto& [name, part] : parts) texts.push_back(fmt::format("{} {:.4g}", name, part));
  return texts.empty() ? "" : fmt::format(" ({})", join(texts));
}

std::string training_line(const TrainingProgress& progress, std::optional<double> peak) {
  const StepReport& report = progress.report;
  return fmt::format(
      "step {}/{} ({} left)  epoch {}/{}  loss {:.6g}{}  gradient {:.3g}  lr {:.3g}  {} samples/s  "
      "{}  "
      "{}",
      with_thousands(report.step), with_thousands(progress.steps),
      clock_text(progress.seconds_left), with_thousands(progress.epoch),
      with_thousands(progress.epochs), report.loss(), parts_text(progress.loss_parts),
      report.gradient_norm, report.learning_rate,
      with_thousands(static_cast<Size>(progress.samples_per_second)),
      rate_text(progress.flops_per_second, peak), human_bytes(progress.device_bytes));
}

}  // namespace tessera
