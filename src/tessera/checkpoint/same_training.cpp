// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera {
namespace {

/// Keys, and sections as a whole.
constexpr std::array<std::string_view, 5> fixed{"model.", "data.", "training.batch_size",
                                                "optimizer.kind", "optimizer.momentum"};

bool is_fixed(const Setting& setting) {
  for (const std::string_view key : fixed)
    if (setting.key == key || (key.ends_with('.') && setting.key.starts_with(key))) return true;
  return false;
}

}  // namespace

void check_same_training(const std::string& path, const std::string& written_with,
                         const Config& config) {
  const nlohmann::json then = nlohmann::json::parse(written_with, nullptr, false);
  const Config defaults;
  for (const Setting& setting : settings()) {
    if (!is_fixed(setting)) continue;
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

}  // namespace tessera
