// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/process/log.hpp>
#include <tessera/train/metrics_log.hpp>

namespace tessera {
namespace {

/// Returns the seconds since 1970.
double time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns the step of a record; none if the line is no record.
std::optional<Size> step_of_line(const std::string& line) {
  const nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer())
    return std::nullopt;
  return record["step"].get<Size>();
}

}  // namespace

MetricsLog::MetricsLog(const OutputConfig& output, Size steps) {
  if (!output.metrics.empty()) {
    lines_.emplace(output.metrics);
    lines_->keep_lines([&](const std::string& line) {
      const std::optional<Size> step = step_of_line(line);
      return step && *step <= steps;
    });
  }
  if (!output.tensorboard.empty()) {
    const double now = time_now();
    std::error_code failed;
    std::filesystem::create_directories(output.tensorboard, failed);
    if (failed)
      throw Error(ExitCode::usage, "output.tensorboard = {}: cannot be created: {}",
                  output.tensorboard, failed.message());
    lock_.emplace(std::filesystem::path(output.tensorboard) / ".lock");
    events_.emplace(new_event_file(output.tensorboard, now));
    events_->append(event_version(now));
    events_->append(event_restart(now, steps + 1));
  }
}

void MetricsLog::write(Size step, Size epoch, std::span<const NamedNumber> numbers) {
  if (!failure_.empty()) return;
  const double now = time_now();
  try {
    if (lines_) {
      nlohmann::ordered_json record{{"step", step}, {"epoch", epoch}, {"time", now}};
      for (const auto& [name, number] : numbers) record[std::string(name)] = number;
      lines_->append(record.dump() + "\n");
    }
    if (events_) events_->append(event_numbers(now, step, numbers));
  } catch (const Error& error) {
    failure_ = error.what();
    log_warning(failure_ + "; training continues without metrics");
  }
}

}  // namespace tessera
