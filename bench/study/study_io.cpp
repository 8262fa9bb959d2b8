// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iterator>

#include <tessera/base/error.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>
#include <tessera/io/whole_file.hpp>

#include "study/study.hpp"
#include "study/study_keys.hpp"

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;

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
  if (!study.base_file.empty())
    study.base = load_config({.file = fs::path(source.file).parent_path() / study.base_file});
  for (const GivenValue& item : given) set(study, item);
  check_settings(study.base);
  if (study.grids.empty()) throw Error(ExitCode::usage, source.file + ": has no [[grid]]");
  if (study.measure.max_steps < study.measure.steps)
    throw ConfigError("measure.max_steps", std::to_string(study.measure.max_steps),
                      "must be at least measure.steps = " + std::to_string(study.measure.steps));
  check_checkpoints(study);
  return study;
}

}  // namespace tessera::bench
