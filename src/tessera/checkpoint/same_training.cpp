// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/same_contents.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/sample_checksums.hpp>

namespace tessera {
namespace {

/// Paths of data may change if the checksums of the data do not.
constexpr std::array<std::string_view, 3> places{"data.file", "data.x", "data.y"};

std::string value_text(const nlohmann::json& value) {
  return value.is_null() ? "no value" : to_toml(value);
}

/// Rejects the first key that differs.
void check_keys(const std::string& path, const TrainingState& written, const Config& config) {
  const nlohmann::json then = nlohmann::json::parse(written.config, nullptr, false);
  for (const Setting& setting : settings()) {
    const bool is_place = std::find(places.begin(), places.end(), setting.key) != places.end();
    if (!setting.is_fixed || (is_place && !written.data.empty())) continue;
    const std::size_t dot = setting.key.find('.');
    const nlohmann::json::json_pointer place(
        fmt::format("/{}/{}", setting.key.substr(0, dot), setting.key.substr(dot + 1)));
    // A key that the file lacks had the effect of its default.
    const nlohmann::json before =
        then.is_object() && then.contains(place) ? then.at(place) : setting.standard;
    const nlohmann::json now = setting.get(config);
    if (before != now)
      throw Error(ExitCode::usage, "{}: was written with {} = {}, but this run has {}", path,
                  setting.key, value_text(before), value_text(now));
  }
}

/// Rejects data with other checksums. Files of version 1 have none.
void check_samples(const std::string& path, const TrainingState& written, const Config& config) {
  if (written.data.empty() || written.data == sample_checksums(config.data, make_model(config)))
    return;
  throw Error(ExitCode::usage, "{}: was written with data other than {}", path,
              data_files_text(config.data));
}

}  // namespace

TrainingState state_to_resume(const std::string& path, const Communicator& ranks,
                              const Config& config) {
  TrainingState state = collectively(ranks, [&] {
    TrainingState read = read_state(path);
    check_keys(path, read, config);
    if (ranks.rank() == 0) check_samples(path, read, config);
    return read;
  });
  check_same_contents(path, ranks);
  return state;
}

}  // namespace tessera
