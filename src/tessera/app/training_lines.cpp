// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/app/training_lines.hpp>
#include <tessera/base/clock_text.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

/// Returns the parts of the speed that are known.
std::string speed_text(const Speed& speed) {
  const auto whole = [](double rate) { return with_thousands(static_cast<Size>(rate)); };
  std::string text = fmt::format("{}/step  {} samples/s", human_seconds(speed.seconds_per_step),
                                 whole(speed.samples_per_second));
  if (speed.tokens_per_second)
    text += fmt::format("  {} tokens/s", whole(*speed.tokens_per_second));
  text += "  " + human_flops(speed.flops_per_second);
  if (speed.mfu) text += fmt::format(" (MFU {:.2g} %)", 100 * *speed.mfu);
  return text;
}

}  // namespace

std::string parts_text(const std::vector<NamedNumber>& parts) {
  std::vector<std::string> texts;
  for (const auto& [name, part] : parts) texts.push_back(fmt::format("{} {:.4g}", name, part));
  return texts.empty() ? "" : fmt::format(" ({})", join(texts));
}

std::string training_line(const TrainingProgress& progress) {
  const StepReport& report = progress.report;
  return fmt::format(
      "step {}/{} ({} left)  epoch {}/{}  loss {:.6g}{}  gradient {:.3g}  lr {:.3g}  {}  {}",
      with_thousands(report.step), with_thousands(progress.steps),
      clock_text(progress.seconds_left), with_thousands(progress.epoch),
      with_thousands(progress.epochs), report.loss(), parts_text(progress.loss_parts),
      report.gradient_norm, report.learning_rate, speed_text(progress.speed),
      human_bytes(progress.device_bytes));
}

}  // namespace tessera
