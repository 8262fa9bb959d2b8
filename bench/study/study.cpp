// SPDX-License-Identifier: Apache-2.0
#include "study/study.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <variant>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/train/config_files.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A key of studies and the member that it sets.
struct OwnKey {
  std::string name;
  std::variant<bool*, std::string*, ScalingKind*, std::uint64_t*, Size*, std::optional<Size>*,
               double*, std::optional<double>*, std::vector<Grid>*, std::vector<Exclusion>*>
      member;
  bool may_be_zero = false;  ///< other numbers are positive
  double most = std::numeric_limits<double>::infinity();
};

/// Limits of steps, files, and rows of a matrix.
constexpr double most_steps = 1e9, most_files = 1e4, most_rows = 1 << 17;

std::vector<OwnKey> own_keys(Study& s) {
  return {
      {"grid", &s.grids},
      {"exclude", &s.exclusions},
      {"study.base", &s.base_file},
      {"study.name", &s.name},
      {"study.description", &s.description},
      {"study.scaling", &s.scaling},
      {"study.seed", &s.seed, true},
      {"baseline.ranks", &s.baseline.ranks},
      {"baseline.strategy", &s.baseline.strategy},
      {"measure.warm_up", &s.measure.warm_up, true, most_steps},
      {"measure.rounds", &s.measure.rounds, false, most_steps},
      {"measure.launches", &s.measure.launches, false, most_files},
      {"measure.steps", &s.measure.steps, false, most_steps},
      {"measure.max_steps", &s.measure.max_steps, false, most_steps},
      {"measure.block_seconds", &s.measure.block_seconds},
      {"measure.keep_bytes", &s.measure.keep_bytes, true},
      {"measure.instrumented_steps", &s.measure.instrumented_steps, false, most_steps},
      {"measure.checkpoints", &s.measure.checkpoints, false, most_files},
      {"measure.gemm_size", &s.measure.gemm_size, false, most_rows},
      {"limits.case_seconds", &s.limits.case_seconds},
      {"limits.memory_bytes", &s.limits.memory_bytes},
      {"limits.vendor_peak_flops_per_second", &s.limits.vendor_peak_flops_per_second},
      {"verify", &s.verify.enabled},
      {"verify.tolerance", &s.verify.tolerance, true},
      {"verify.steps", &s.verify.steps},
      {"verify.ranks", &s.verify.ranks},
  };
}

void check_number(const OwnKey& key, const Json& value) {
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number < 0 || (number == 0 && !key.may_be_zero))
    reject(key.name, value,
           key.may_be_zero ? "must not be negative" : "must be positive and finite");
  if (number > key.most)
    reject(key.name, value, "must be at most {}", with_thousands(static_cast<Size>(key.most)));
}

/// Returns "; did you mean ranks?" for a name that is neither one of these nor a key of a
/// configuration, or "".
std::string did_you_mean_key(const std::string& name, std::span<const std::string_view> own) {
  const auto near = suggest_nearest(name, own);
  const std::string key = near ? *near : suggest_key(name);
  return key.empty() ? "" : "; did you mean " + key + "?";
}

/// {"distributed": {"overlap": [..]}} -> {"distributed.overlap": [..]}
void flatten(const Json& table, const std::string& prefix, std::map<std::string, Json>& out) {
  for (const auto& [key, value] : table.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", out);
    else
      out[prefix + key] = value;
  }
}

void check_factor(const std::string& where, const std::string& name, const Json& value) {
  if (std::ranges::find(factor_names, name) != factor_names.end()) return;
  if (std::ranges::find(settings(), name, &Setting::key) != settings().end()) return;
  reject(where + "." + name, value,
         "is neither a factor (" + join(factor_names) + ") nor a configuration key" +
             did_you_mean_key(name, factor_names));
}

std::map<std::string, Json> table_of(const std::string& key, const Json& table) {
  if (!table.is_object()) reject(key, table, "must be a table: [[" + key + "]]");
  std::map<std::string, Json> flat;
  flatten(table, "", flat);
  return flat;
}

std::vector<Json> values_of(const std::string& key, const Json& value) {
  if (!value.is_array()) return {value};
  if (value.empty()) reject(key, value, "must have at least one value");
  return value.get<std::vector<Json>>();
}

void parse(const std::string& key, const Json& table, Grid& grid) {
  for (const auto& [name, value] : table_of(key, table)) {
    check_factor(key, name, value);
    // The axes are one value; every other list holds alternatives.
    grid[name] = name == "meshes_over" ? std::vector<Json>{value} : values_of(key, value);
  }
}

void parse(const std::string& key, const Json& table, Exclusion& exclusion) {
  for (const auto& [name, value] : table_of(key, table)) {
    if (name == "reason") {
      tessera::assign(key + ".reason", value, exclusion.reason);
    } else {
      check_factor(key, name, value);
      exclusion.where[name] = values_of(key, value);
    }
  }
  if (exclusion.reason.empty()) reject(key, table, "needs a reason");
  if (exclusion.where.empty())
    reject(key, table, "needs at least one factor, or it would exclude every case");
}

/// [[grid]] and [[exclude]].
template <class T>
void assign(const std::string& key, const Json& value, std::vector<T>& tables) {
  if (!value.is_array() || value.empty())
    reject(key, value, "must be an array of tables: [[" + key + "]]");
  tables.clear();
  for (const Json& table : value) parse(key, table, tables.emplace_back());
}

using tessera::assign;

bool is_configuration_section(const std::string& key) {
  const std::string section = key.substr(0, key.find('.') + 1);
  return section.ends_with('.') &&
         std::any_of(settings().begin(), settings().end(),
                     [&](const Setting& setting) { return setting.key.starts_with(section); });
}

/// Returns true if the value of this key is free text; false for unknown keys.
bool is_text(const std::string& key) {
  Study any;
  for (const OwnKey& own : own_keys(any))
    if (own.name == key) return std::holds_alternative<std::string*>(own.member);
  return tessera::is_text(key);
}

/// Sets one key of a study or of the configuration that its cases start from: "measure.steps",
/// "model.seed", "grid". Throws ConfigError for an unknown key and for a wrong value.
void set(Study& study, const GivenValue& given) {
  const auto& [name, value] = given;
  std::vector<std::string> names;
  for (const OwnKey& key : own_keys(study)) {
    names.push_back(key.name);
    if (key.name != name) continue;
    std::visit([&, &name = name, &value = value](auto* member) { assign(name, value, *member); },
               key.member);
    if (value.is_number()) check_number(key, value);
    return;
  }
  if (!is_configuration_section(name)) {
    const std::string near =
        did_you_mean_key(name, std::vector<std::string_view>(names.begin(), names.end()));
    reject(name, value,
           "is not a known key of a study" +
               (near.empty() ? "; known keys are " + join(names) + " and those of a configuration"
                             : near));
  }
  tessera::set(study.base, name, value);
  study.gives_samples |= name == "data.samples";
}

/// Returns the keys of the study, with those of the table [small] after the others if `small` is
/// true.
std::vector<GivenValue> select_variant(std::vector<GivenValue> given, bool small) {
  const std::string prefix = "small.";
  std::vector<GivenValue> own, varied;
  for (GivenValue& item : given) {
    if (item.key.starts_with(prefix))
      varied.push_back({item.key.substr(prefix.size()), std::move(item.value)});
    else
      own.push_back(std::move(item));
  }
  if (small && varied.empty())
    throw Error(ExitCode::usage, "--small: the study has no table [small]");
  // Keys of [small] are checked also when they are not used.
  Study unused;
  for (const GivenValue& item : varied) set(unused, item);
  if (small) std::move(varied.begin(), varied.end(), std::back_inserter(own));
  return own;
}

/// Replaces the ranks and strategies of every grid by those of the command line.
void choose_factors(Study& study, const StudySource& source) {
  for (const std::string& strategy : source.strategies)
    if (!value_named<Strategy>(strategy))
      throw ConfigError("--strategy", strategy, must_be_one_of(strategy, names_of<Strategy>));
  const std::vector<Json> ranks(source.ranks.begin(), source.ranks.end());
  const std::vector<Json> strategies(source.strategies.begin(), source.strategies.end());
  for (Grid& grid : study.grids) {
    if (!strategies.empty()) grid["strategy"] = strategies;
    if (ranks.empty()) continue;
    // Meshes that set the number of ranks give way to the usual mesh of the strategy.
    if (grid.count("ranks") == 0) grid.erase("mesh");
    grid["ranks"] = ranks;
  }
  // The baseline is then the case with the fewest ranks.
  std::optional<Size>& of_baseline = study.baseline.ranks;
  if (!ranks.empty() && std::count(ranks.begin(), ranks.end(), of_baseline.value_or(0)) == 0)
    of_baseline.reset();
}

/// Returns the path of the base configuration: beside the study, or with the installed inputs.
fs::path base_path(const Study& study) {
  fs::path beside = fs::path(study.file).parent_path() / study.base_file;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed =
      program.parent_path().parent_path() / "share/tessera/inputs" / study.base_file;
  return !fs::exists(beside, error) && fs::exists(installed, error) ? installed : beside;
}

/// Rejects a number of checkpoints if no case writes any.
void check_checkpoints(const Study& study) {
  const bool writes = study.base.checkpoint.enabled() ||
                      std::any_of(study.grids.begin(), study.grids.end(), [](const Grid& grid) {
                        return grid.count("checkpoint.directory") > 0;
                      });
  if (!writes && study.measure.checkpoints != MeasureRules{}.checkpoints)
    throw ConfigError("measure.checkpoints", std::to_string(study.measure.checkpoints),
                      "needs checkpoint.directory");
}

}  // namespace

Study load_study(const StudySource& source) {
  std::vector<GivenValue> given =
      select_variant(parse_toml(read_text(source.file), source.file), source.small);
  for (const std::string& override : source.overrides)
    given.push_back(parse_assignment(override, is_text));
  Study study;
  study.file = source.file;
  study.small = source.small;
  study.name = fs::path(source.file).stem().string();
  for (const GivenValue& item : given)
    if (item.key == "study.base") set(study, item);
  if (!study.base_file.empty()) study.base = load_config({.file = base_path(study)});
  for (const GivenValue& item : given) set(study, item);
  check_settings(study.base);
  if (study.grids.empty())
    throw Error(ExitCode::usage, "{}: has no [[grid]] and is no study; tessera run trains",
                source.file);
  choose_factors(study, source);
  if (study.measure.max_steps < study.measure.steps)
    throw ConfigError("measure.max_steps", std::to_string(study.measure.max_steps),
                      "must be at least measure.steps = " + std::to_string(study.measure.steps));
  check_checkpoints(study);
  return study;
}

std::vector<FileUse> inputs_of(const StudyCases& work, const std::string& machine) {
  const Study& study = work.study;
  std::vector<FileUse> uses{{"study", study.file}, {"--machine", machine}};
  if (!study.base_file.empty())
    uses.push_back({"study.base", fs::path(study.file).parent_path() / study.base_file});
  for (const Case& point : work.cases) {
    const std::vector<FileUse> more = tessera::inputs_of(point.config);
    uses.insert(uses.end(), more.begin(), more.end());
  }
  return uses;
}

}  // namespace tessera::bench
