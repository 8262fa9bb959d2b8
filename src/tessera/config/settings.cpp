// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <tessera/base/error.hpp>
#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>

namespace tessera {

namespace {

/// Sections of files that tessera run does not read: studies and machine files.
constexpr std::array<std::string_view, 7> study_sections{"study",  "grid",   "exclude", "measure",
                                                         "verify", "limits", "baseline"};
constexpr std::array<std::string_view, 3> machine_sections{"machine", "cache", "network"};

/// Keys of other tools' files that the launcher decides here.
constexpr std::array<std::string_view, 4> launcher_names{"rank", "local_rank", "master_addr",
                                                         "master_port"};

/// Returns true if the key is "section.table.name" of this table.
bool is_entry(const Setting& table, const std::string& key) {
  return key.starts_with(table.key + ".") && table.standard.is_object();
}

bool is_section(const std::string& name) {
  for (const Setting& known : settings())
    if (known.key.starts_with(name + ".")) return true;
  return false;
}

/// A key of an earlier version, and what replaces it.
struct GoneKey {
  std::string_view key, instead;
};
constexpr std::array<GoneKey, 1> gone_keys{{{"checkpoint.overwrite",
                                             "is gone: each training has a folder of its own in "
                                             "checkpoint.directory, and replaces no other"}}};

[[noreturn]] void reject_unknown(const std::string& key, const nlohmann::json& value) {
  for (const GoneKey& gone : gone_keys)
    if (gone.key == key) throw ConfigError(key, value.dump(), gone.instead);
  const std::string_view name = std::string_view(key).substr(key.rfind('.') + 1);
  for (std::string_view launched : launcher_names)
    if (name == launched)
      reject(key, value, "is set by the launcher (mpirun, srun) and must not be given here");
  // Other tools name the key after what happens to the gradients of the parts of a batch.
  if (name.find("accum") != std::string_view::npos)
    reject(key, value, "is not a known key; training.microbatches is gradient accumulation");
  const std::string section = key.substr(0, key.find('.'));
  if (std::ranges::find(study_sections, section) != study_sections.end())
    reject(key, value, "is a key of a study; tessera-bench reads it");
  if (std::ranges::find(machine_sections, section) != machine_sections.end())
    reject(key, value, "is a key of a machine file, for the option --machine");
  const std::string near = suggest_key(key);
  reject(key, value, "is not a known key; {}",
         near.empty() ? "tessera run --print-config lists them" : "did you mean " + near + "?");
}

}  // namespace

std::string key_of_other_tool(std::string_view name) {
  std::vector<std::string_view> keys;
  for (const Setting& known : settings()) keys.emplace_back(known.key);
  if (auto key = name_of_other_tool(name, keys)) return *key;
  constexpr std::array<std::string_view, 2> sharded{name_of(Strategy::fsdp),
                                                    name_of(Strategy::hybrid)};
  if (const auto strategy = name_of_other_tool(name, sharded))
    return "distributed.strategy=" + *strategy;
  const auto axis = name_of_other_tool(name, known_axes);
  return axis ? "the mesh axis " + *axis : "";
}

std::string suggest_key(std::string_view given) {
  const auto last_part = [](std::string_view key) { return key.substr(key.rfind('.') + 1); };
  const std::string_view name = last_part(given);
  const auto is_same = [&](const Setting& known) { return last_part(known.key) == name; };
  if (std::ranges::count_if(settings(), is_same) == 1)
    return std::ranges::find_if(settings(), is_same)->key;
  const std::string kind = std::string(name) + ".kind";  // of a section
  if (std::ranges::find(settings(), kind, &Setting::key) != settings().end()) return kind;
  if (std::string known = key_of_other_tool(name); !known.empty()) return known;
  std::vector<std::string_view> keys, names;
  for (const Setting& known : settings()) {
    keys.emplace_back(known.key);
    names.push_back(keys.back().substr(keys.back().find('.') + 1));
  }
  if (const auto near = suggest_nearest(given, keys)) return *near;
  const auto near = suggest_nearest(name, names);
  return near ? std::string(keys[std::ranges::find(names, *near) - names.begin()]) : "";
}

const Setting& setting_of(std::string_view key) {
  return *std::ranges::find(settings(), key, &Setting::key);
}

bool is_text(const std::string& key) {
  for (const Setting& known : settings())
    if (known.is_text && (known.key == key ? !known.standard.is_object() : is_entry(known, key)))
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
  for (const Setting& known : settings()) known.check(config, true);
}

}  // namespace tessera
