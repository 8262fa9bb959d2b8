// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

#include "study/study.hpp"
#include "study/study_keys.hpp"

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  const auto reject = [&](int reason) {
    throw Error(ExitCode::usage, path + ": cannot be read: " + std::strerror(reason));
  };
  std::error_code unused;
  if (fs::is_directory(path, unused)) reject(EISDIR);
  std::ifstream file(path, std::ios::binary);
  if (!file) reject(errno);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_configuration_section(const std::string& key) {
  const std::string section = key.substr(0, key.find('.') + 1);
  for (const Setting& setting : settings())
    if (setting.key.starts_with(section)) return section.ends_with('.');
  return false;
}

[[noreturn]] void reject_unknown(const GivenValue& given) {
  std::vector<std::string> known = study_keys();
  for (const Setting& setting : settings()) known.push_back(setting.key);
  const auto near = suggest_nearest(given.key, known);
  throw ConfigError(
      given.key, to_toml(given.value),
      "is not a known key of a study" +
          (near ? "; did you mean " + *near + "?"
                : "; known keys are " + join(study_keys()) + " and those of a configuration"));
}

template <class Parse>
auto parse_tables(const GivenValue& given, const Parse& parse) {
  if (!given.value.is_array() || given.value.empty())
    throw ConfigError(given.key, to_toml(given.value),
                      "must be an array of tables: [[" + given.key + "]]");
  std::vector<decltype(parse(given.key, given.value[0]))> tables;
  for (const nlohmann::json& table : given.value) tables.push_back(parse(given.key, table));
  return tables;
}

void apply(Study& study, const GivenValue& given) {
  if (given.key == "study.base") return;
  if (given.key == "grid") {
    study.grids = parse_tables(given, parse_grid);
  } else if (given.key == "exclude") {
    study.exclusions = parse_tables(given, parse_exclusion);
  } else if (!set_study_key(study, given.key, given.value)) {
    if (!is_configuration_section(given.key)) reject_unknown(given);
    set(study.base, given.key, given.value);
    study.gives_samples |= given.key == "data.samples";
  }
}

/// The configuration that the cases start from, beside the study unless the path is absolute.
Config load_base(const std::string& study_file, const std::vector<GivenValue>& given) {
  for (const GivenValue& item : given) {
    if (item.key != "study.base") continue;
    if (!item.value.is_string())
      throw ConfigError(item.key, to_toml(item.value), "must name a configuration file");
    return load_config(
        {.file = (fs::path(study_file).parent_path() / item.value.get<std::string>()).string()});
  }
  return {};
}

/// The keys of the table [small] without that prefix; the others stand before them.
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
  // What is not used now must be right all the same.
  Study unused;
  for (const GivenValue& item : varied) apply(unused, item);
  if (small) std::move(varied.begin(), varied.end(), std::back_inserter(own));
  return own;
}

}  // namespace

Study load_study(const StudySource& source) {
  const std::vector<GivenValue> given =
      select_variant(parse_toml(read_file(source.file), source.file), source.small);
  Study study;
  study.file = source.file;
  study.small = source.small;
  study.name = fs::path(source.file).stem().string();
  study.base = load_base(source.file, given);
  for (const GivenValue& item : given) apply(study, item);
  for (const std::string& override : source.overrides) apply(study, parse_assignment(override));
  check_settings(study.base);
  if (study.grids.empty()) throw Error(ExitCode::usage, source.file + ": has no [[grid]]");
  if (study.measure.max_steps < study.measure.steps)
    throw ConfigError("measure.max_steps", std::to_string(study.measure.max_steps),
                      "must be at least measure.steps = " + std::to_string(study.measure.steps));
  return study;
}

}  // namespace tessera::bench
