// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/config/toml_text.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/data/sample_checksums.hpp>

namespace tessera {
namespace {

/// Keys, and sections as a whole.
constexpr std::array<std::string_view, 5> fixed{"model.", "data.", "training.batch_size",
                                                "optimizer.kind", "optimizer.momentum"};

/// Paths of the data, which may change; their checksums may not.
constexpr std::array<std::string_view, 3> places{"data.file", "data.x", "data.y"};

/// This key accepts or rejects data and does not change them.
constexpr std::string_view free_key = "data.allow_nonfinite";

bool is_fixed(const Setting& setting) {
  if (setting.key == free_key) return false;
  for (const std::string_view key : fixed)
    if (setting.key == key || (key.ends_with('.') && setting.key.starts_with(key))) return true;
  return false;
}

/// Rejects the first key that differs.
void check_keys(const std::string& path, const TrainingState& written, const Config& config) {
  const nlohmann::json then = nlohmann::json::parse(written.config, nullptr, false);
  const Config defaults;
  for (const Setting& setting : settings()) {
    const bool is_place = std::find(places.begin(), places.end(), setting.key) != places.end();
    if (!is_fixed(setting) || (is_place && !written.data.empty())) continue;
    const std::size_t dot = setting.key.find('.');
    const nlohmann::json::json_pointer place(
        fmt::format("/{}/{}", setting.key.substr(0, dot), setting.key.substr(dot + 1)));
    // A key that did not exist then had the effect of its default.
    const nlohmann::json before =
        then.is_object() && then.contains(place) ? then.at(place) : setting.get(defaults);
    const nlohmann::json now = setting.get(config);
    if (before != now)
      throw Error(ExitCode::usage, "{}: was written with {} = {}, but this run has {}", path,
                  setting.key, to_toml(before), to_toml(now));
  }
}

/// Names x or y of the data as the configuration does: "data.x = x.npy".
std::string name_of_data(const DataConfig& data, bool is_y) {
  const DataRow& row = row_of(data.kind);
  const std::string file = "data.file = " + data.file;
  if (!row.reads_arrays) return file;
  const std::string array = is_y ? "data.y = " + data.y : "data.x = " + data.x;
  return row.reads_file ? array + ", " + file : array;
}

/// Rejects the first samples that differ.
void check_samples(const std::string& path, const TrainingState& written, const Config& config) {
  if (written.data.empty()) return;  // of version 1 of the format, which has no checksums
  const nlohmann::json then = nlohmann::json::parse(written.data, nullptr, false);
  const std::vector<SampleChecksum> now = sample_checksums(config.data, make_model(config.model));
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& [samples, x, y] = now[i];
    const nlohmann::json before = then.is_array() && i < then.size() ? then[i] : nlohmann::json();
    if (before == nlohmann::json{x, y}) continue;
    const bool is_y = before.is_array() && !before.empty() && before[0] == x;
    throw Error(ExitCode::usage,
                "{}: was written with other data: {} has other values in samples {} to {}", path,
                name_of_data(config.data, is_y), samples.begin, samples.end() - 1);
  }
}

}  // namespace

TrainingState state_to_resume(const std::string& path, const Communicator& ranks,
                              const Config& config) {
  return collectively(ranks, [&] {
    TrainingState state = read_state(path);
    check_keys(path, state, config);
    if (ranks.rank() == 0) check_samples(path, state, config);
    return state;
  });
}

std::string samples_text(const Config& config) {
  nlohmann::json list = nlohmann::json::array();
  for (const SampleChecksum& one : sample_checksums(config.data, make_model(config.model)))
    list.push_back({one.x, one.y});
  return list.dump();
}

}  // namespace tessera
