// SPDX-License-Identifier: Apache-2.0
#include "study/study.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/fields.hpp>
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

/// The fields of a study and of the rules in it. [[grid]] and [[exclude]] are tables of their own.
const Fields<Study>& own_fields() {
  static const Fields<Study> fields = [] {
    Fields<Study> all{
        {"study.base", &Study::base_file, "configuration that the cases start from"},
        {"study.name", &Study::name, "default: the name of the file"},
        {"study.description", &Study::description, "for readers of the results"},
        {"study.scaling", &Study::scaling, "the batch that stays the same when ranks are added"},
        {"study.seed", &Study::seed, "for the order of cases", a_seed},
    };
    all.insert(all.end(), rule_fields().begin(), rule_fields().end());
    return all;
  }();
  return fields;
}

/// Returns "; did you mean ranks?" for a name that is neither one of these nor a key of a
/// configuration, or "".
std::string did_you_mean_key(const std::string& name, std::span<const std::string_view> own) {
  const auto has_name = [&](std::string_view key) { return key.ends_with("." + name); };
  const auto same = std::ranges::find_if(own, has_name);
  const auto near = suggest_nearest(name, own);
  const std::string key = same != own.end() ? std::string(*same) : near ? *near : suggest_key(name);
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
      if (name == "meshes_over")
        reject(key + "." + name, value, "is not a factor of a case; use mesh");
      exclusion.where[name] = values_of(key, value);
    }
  }
  if (exclusion.reason.empty()) reject(key, table, "needs a reason");
  if (exclusion.where.empty())
    reject(key, table, "needs at least one factor, or it would exclude every case");
}

/// [[grid]] and [[exclude]].
template <class T>
void parse_tables(const std::string& key, const Json& value, std::vector<T>& tables) {
  if (!value.is_array() || value.empty())
    reject(key, value, "must be an array of tables: [[" + key + "]]");
  tables.clear();
  for (const Json& table : value) parse(key, table, tables.emplace_back());
}

bool is_configuration_section(const std::string& key) {
  const std::string section = key.substr(0, key.find('.') + 1);
  return section.ends_with('.') &&
         std::any_of(settings().begin(), settings().end(),
                     [&](const Setting& setting) { return setting.key.starts_with(section); });
}

/// Returns true if the value of this key is free text; false for unknown keys.
bool is_text(const std::string& key) {
  const auto own = std::ranges::find(own_fields(), key, &Field<Study>::key);
  return own == own_fields().end() ? tessera::is_text(key) : own->is_text;
}

/// Sets one key of a study or of the configuration that its cases start from: "measure.steps",
/// "model.seed", "grid". Throws ConfigError for an unknown key and for a wrong value.
void set(Study& study, const GivenValue& given) {
  const auto& [name, value] = given;
  if (name == "grid") return parse_tables(name, value, study.grids);
  if (name == "exclude") return parse_tables(name, value, study.exclusions);
  std::vector<std::string> names{"grid", "exclude"};
  for (const Field<Study>& field : own_fields()) {
    names.push_back(field.key);
    if (field.key != name) continue;
    field.set(study, value);
    return check_bounds(name, value, field.bounds);
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

bool writes_checkpoints(const Study& study) {
  return study.base.checkpoint.enabled() || std::ranges::any_of(study.grids, [](const Grid& grid) {
           return grid.count("checkpoint.directory") > 0;
         });
}

}  // namespace

const Fields<Study>& rule_fields() {
  using B = Baseline;
  using M = MeasureRules;
  using L = Limits;
  using V = VerifyRules;
  constexpr Bounds size = up_to(0x1p62), steps = up_to(1e9), files = up_to(1e4),
                   rows = up_to(1 << 17), bytes{.least = 0, .most = 0x1p62},
                   no_steps{.least = 0, .most = 1e9};
  const Rule<M> enough{[](const M& m) -> std::string {
                         if (m.max_steps >= m.steps) return "";
                         return fmt::format("must be at least measure.steps = {}", m.steps);
                       },
                       When::always};
  const Rule<V> verified{[](const V& v) { return v.enabled; }, "needs verify = true"};
  static const Fields<Study> fields = [&] {
    Fields<Study> all;
    add_part(
        all,
        Fields<B>{{"baseline.ranks", &B::ranks, "default: the fewest that ran", size},
                  {"baseline.strategy", &B::strategy, "strategy of the baseline"}},
        [](auto& s) -> auto& { return s.baseline; });
    add_part(
        all,
        Fields<M>{{"measure.warm_up", &M::warm_up, "steps after a set-up", no_steps},
                  {"measure.rounds", &M::rounds, "blocks of steps in a launch", steps},
                  {"measure.launches", &M::launches, "that measure a case", files},
                  {"measure.steps", &M::steps, "at least, in all rounds", steps},
                  {"measure.max_steps", &M::max_steps, "in all rounds", steps, enough},
                  {"measure.block_seconds", &M::block_seconds, "of a round", tessera::positive},
                  {"measure.keep_bytes", &M::keep_bytes, "for cases kept set up", bytes},
                  {"measure.instrumented_steps", &M::instrumented_steps, "steps", steps},
                  {"measure.checkpoints", &M::checkpoints, "per case", files},
                  {"measure.gemm_size", &M::gemm_size, "rows of the peak's product", rows}},
        [](auto& s) -> auto& { return s.measure; });
    add_part(
        all,
        Fields<L>{{"limits.case_seconds", &L::case_seconds, "of a case", tessera::positive},
                  {"limits.memory_bytes", &L::memory_bytes, "of a rank", size},
                  {"limits.vendor_peak_flops_per_second", &L::vendor_peak_flops_per_second,
                   "of a rank", tessera::positive}},
        [](auto& s) -> auto& { return s.limits; });
    add_part(
        all,
        Fields<V>{{"verify", &V::enabled, "compare losses with those of a reference"},
                  {"verify.tolerance", &V::tolerance, "relative", not_negative},
                  {"verify.steps", &V::steps, "default: all epochs", size},
                  {"verify.ranks", &V::ranks, "of a reference", size, verified}},
        [](auto& s) -> auto& { return s.verify; });
    const auto rules = [&](const char* key) -> auto& {
      return std::ranges::find(all, key, &Field<Study>::key)->rules;
    };
    rules("measure.checkpoints").emplace_back(writes_checkpoints, "needs checkpoint.directory");
    rules("verify.ranks")
        .emplace_back([](const Study& s) { return s.limits.memory_bytes.has_value(); },
                      "needs limits.memory_bytes, which tells what fits on one rank");
    return all;
  }();
  return fields;
}

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
  check(own_fields(), study);
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
