// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/element_hash.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
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

/// Returns the tag under which TensorBoard shows a metric. Its first part names a group.
std::string tag_of(std::string_view metric) {
  constexpr std::array<std::string_view, 2> optimizer{"gradient_norm", "learning_rate"};
  constexpr std::array<std::string_view, 5> speed{"seconds_per_step", "samples_per_second",
                                                  "tokens_per_second", "flops_per_second", "mfu"};
  const auto is_in = [&](const auto& group) {
    return std::find(group.begin(), group.end(), metric) != group.end();
  };
  const std::string_view group = is_in(optimizer)                             ? "optimizer"
                                 : is_in(speed)                               ? "speed"
                                 : metric.find('/') != std::string_view::npos ? "router"
                                                                              : "loss";
  return fmt::format("{}/{}", group, metric);
}

/// Removes `expected`, or as much of it as the text has, from its beginning. Returns false if the
/// text differs.
bool take(std::string_view& text, std::string_view expected) {
  expected = expected.substr(0, text.size());
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

/// Returns true for the begin of a file of records whose second key is `key`, or of an empty file.
bool has_records(const std::string& path, std::string_view key) {
  std::string begin(1000, ' ');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), std::ssize(begin));
  std::erase_if(begin, [](unsigned char c) { return std::isspace(c); });
  std::string_view text = begin;
  if (!take(text, "{\"step\":")) return false;
  text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  return take(text, fmt::format(",\"{}\":", key));
}

}  // namespace

void check_appendable(const OutputConfig& output) {
  const auto check = [](const char* key, const std::string& path, std::string_view second_key) {
    std::error_code unused;
    if (std::filesystem::is_regular_file(path, unused) && !has_records(path, second_key))
      throw ConfigError(key, path, "holds something else; choose another file or remove this one");
  };
  check("output.metrics", output.metrics, "epoch");
  check("output.hashes", output.hashes, "hash");
}

MetricsLog::MetricsLog(const OutputConfig& output, Size steps) {
  check_appendable(output);
  // Nothing is shortened before all is open and locked.
  const auto open = [](std::optional<AppendFile>& file, const std::string& path) {
    if (!path.empty()) file.emplace(path);
  };
  open(lines_, output.metrics);
  open(hashes_, output.hashes);
  if (!output.tensorboard.empty()) open_events(output.tensorboard, steps);
  for (const std::optional<AppendFile>* file : {&lines_, &hashes_})
    if (*file)
      (*file)->keep_lines([&](const std::string& line) {
        if (trim(line).empty()) return true;  // editors and copies leave such lines
        const std::optional<Size> step = step_of_line(line);
        return step && *step <= steps;
      });
}

void MetricsLog::open_events(const std::filesystem::path& directory, Size steps) {
  try {
    std::filesystem::create_directories(directory);
    lock_.emplace(directory / event_lock);
    const double now = time_now();
    events_.emplace(new_event_file(directory, now));
    events_->append(event_version(now));
    events_->append(event_restart(now, steps + 1));
  } catch (const std::filesystem::filesystem_error& error) {
    throw ConfigError("output.tensorboard", directory.string(), "cannot be created: {}",
                      error.code().message());
  } catch (const Error& error) {
    throw ConfigError("output.tensorboard", directory.string(), "cannot be used: {}", error.what());
  }
}

void MetricsLog::try_to(const std::function<void()>& append) {
  if (!failure_.empty()) return;
  try {
    append();
  } catch (const Error& error) {
    failure_ = error.what();
    log_warning(failure_ + "; training continues without metrics and hashes");
  }
}

void MetricsLog::write(Size step, Size epoch, std::span<const NamedNumber> numbers) {
  const double now = time_now();
  try_to([&] {
    if (lines_) {
      nlohmann::ordered_json record{{"step", step}, {"epoch", epoch}, {"time", now}};
      for (const auto& [name, number] : numbers) record[std::string(name)] = number;
      lines_->append(record.dump() + "\n");
    }
    if (!events_) return;
    std::vector<std::string> tags;
    for (const auto& [name, number] : numbers) tags.push_back(tag_of(name));
    std::vector<NamedNumber> tagged(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < tags.size(); ++i) tagged[i].first = tags[i];
    events_->append(event_numbers(now, step, tagged));
  });
}

void MetricsLog::write_hashes(Size step, const std::vector<std::string>& names,
                              const std::vector<std::uint64_t>& hashes) {
  nlohmann::ordered_json record{{"step", step}}, tensors;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    tensors[names[i]] = fmt::format("{:016x}", hashes[i]);
    all = mix(all + hashes[i]);
  }
  record["hash"] = fmt::format("{:016x}", all);
  record["hashes"] = std::move(tensors);
  try_to([&] { hashes_->append(record.dump() + "\n"); });
}

}  // namespace tessera
