// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera {

void to_json(nlohmann::json& json, const MeshSizes& sizes) {
  json = nlohmann::json::array();
  for (const Size size : sizes) {
    const auto word = std::find_if(size_words.begin(), size_words.end(),
                                   [&](const SizeWord& known) { return known.size == size; });
    if (word == size_words.end())
      json.push_back(size);
    else
      json.push_back(word->name);
  }
}
namespace {

/// Keys of other tools' files that the launcher decides here.
constexpr std::array<std::string_view, 4> launcher_names{"rank", "local_rank", "master_addr",
                                                         "master_port"};

/// Returns true if the key is "section.table.name" of this table.
bool is_entry(const Setting& table, const std::string& key) {
  return key.starts_with(table.key + ".") && table.get({}).is_object();
}

bool is_section(const std::string& name) {
  for (const Setting& known : settings())
    if (known.key.starts_with(name + ".")) return true;
  return false;
}

[[noreturn]] void reject_unknown(const std::string& key, const nlohmann::json& value) {
  const std::string_view name = std::string_view(key).substr(key.rfind('.') + 1);
  for (std::string_view launched : launcher_names)
    if (name == launched)
      reject(key, value, "is set by the launcher (mpirun, srun) and must not be given here");
  // Other tools name the key after what happens to the gradients of the parts of a batch.
  if (name.find("accum") != std::string_view::npos)
    reject(key, value, "is not a known key; training.microbatches is gradient accumulation");
  std::vector<std::string> keys;
  std::vector<std::string> names;
  for (const Setting& known : settings()) {
    keys.push_back(known.key);
    names.push_back(known.key.substr(known.key.find('.') + 1));
  }
  std::string hint = "is not a known key";
  if (const auto near = suggest_nearest(key, keys)) {
    hint += "; did you mean " + *near + "?";
  } else if (const auto near_name = suggest_nearest(name, names)) {
    const auto found = std::find(names.begin(), names.end(), *near_name) - names.begin();
    hint += "; did you mean " + keys[found] + "?";
  } else {
    hint += "; tessera run --print-config lists them";
  }
  reject(key, value, hint);
}

}  // namespace

const Setting& setting_of(std::string_view key) {
  return *std::find_if(settings().begin(), settings().end(),
                       [&](const Setting& setting) { return setting.key == key; });
}

bool is_text(const std::string& key) {
  for (const Setting& known : settings())
    if (known.is_text && (known.key == key ? !known.get({}).is_object() : is_entry(known, key)))
      return true;
  return false;
}

void set(Config& config, const std::string& key, const nlohmann::json& value) {
  for (const Setting& known : settings())
    if (known.key == key) return known.set(config, value);
  for (const Setting& known : settings())
    if (is_entry(known, key)) {
      nlohmann::json table = known.get(config);
      table[key.substr(known.key.size() + 1)] = value;
      return known.set(config, table);
    }
  if (value.is_object() && value.empty() && is_section(key)) return;
  reject_unknown(key, value);
}

void check_settings(const Config& config) {
  for (const Setting& known : settings()) known.check(config);
}

}  // namespace tessera
