// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/known_names.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera {

std::vector<std::string_view> names_in(std::span<const KnownName> known) {
  std::vector<std::string_view> names;
  for (const KnownName& entry : known) names.push_back(entry.name);
  return names;
}

std::string must_be_one_of(std::string_view wrong, std::span<const std::string_view> names) {
  std::string text = "must be one of " + join(names);
  if (const auto nearest = suggest_nearest(wrong, names))
    text += "; did you mean " + *nearest + "?";
  return text;
}

void check_name(std::string_view key, const std::string& value, std::span<const KnownName> known) {
  std::vector<std::string_view> available;
  for (const KnownName& entry : known)
    if (entry.unavailable.empty()) available.push_back(entry.name);
  for (const KnownName& entry : known) {
    if (entry.name != value) continue;
    if (entry.unavailable.empty()) return;
    reject(key, value, std::string(entry.unavailable) + "; available: " + join(available));
  }
  reject(key, value, must_be_one_of(value, names_in(known)));
}

}  // namespace tessera
