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
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/sample_checksums.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {
namespace {

/// Paths of data may change if the checksums of the data do not.
constexpr std::array<std::string_view, 3> places{"data.file", "data.x", "data.y"};

/// Returns true if a change of this key is a change of the training. `has_checksums`: the training
/// identifies its data by checksums.
bool is_fixed(const Setting& setting, bool has_checksums) {
  const bool is_place = std::find(places.begin(), places.end(), setting.key) != places.end();
  return setting.is_fixed && !(is_place && has_checksums);
}

std::string value_text(const nlohmann::json& value) {
  return value.is_null() ? "no value" : to_toml(value);
}

/// Rejects the first key that differs.
void check_keys(const std::string& path, const TrainingState& written, const Config& config) {
  for (const Setting& setting : settings()) {
    if (!is_fixed(setting, !written.data.empty())) continue;
    const std::size_t dot = setting.key.find('.');
    const nlohmann::json::json_pointer place(
        fmt::format("/{}/{}", setting.key.substr(0, dot), setting.key.substr(dot + 1)));
    // A key that the file lacks had the effect of its default.
    const nlohmann::json before =
        written.config.contains(place) ? written.config.at(place) : setting.standard;
    const nlohmann::json now = setting.get(config);
    if (before != now)
      throw Error(ExitCode::usage, "{}: was written with {} = {}, but this run has {}", path,
                  setting.key, value_text(before), value_text(now));
  }
}

/// Rejects data with other checksums. Checkpoints of earlier versions have none of arrays.
void check_samples(const std::string& path, const TrainingState& written, const Config& config,
                   const std::string& data) {
  if (written.data.empty() || written.data == "[]" || written.data == data) return;
  const std::string files = data_files_text(config.data);
  throw Error(ExitCode::usage, "{}: was written with data other than {}", path,
              files.empty() ? "the arrays of fit()" : files);
}

/// Returns the state from which this training can go on. Throws Error if it cannot.
TrainingState fitting_state(const std::string& path, const Config& config,
                            const std::string* data) {
  TrainingState state = read_state(path);
  check_keys(path, state, config);
  if (data != nullptr) check_samples(path, state, config, *data);
  return state;
}

/// Rejects a directory that only has files of version 0.2.
void check_has_no_hdf5(const std::filesystem::path& directory) {
  std::error_code unused;
  if (!std::filesystem::is_directory(directory, unused)) return;
  for (const std::string& name : names_in(directory))
    if (name.starts_with("step_") && name.ends_with(".h5"))
      throw Error(ExitCode::usage,
                  "{}: is a checkpoint of Tessera 0.2: export it with `tessera checkpoint export` "
                  "of that version, and start from the result with checkpoint.init_from",
                  (directory / name).string());
}

}  // namespace

TrainingState state_to_resume(const std::string& path, const Communicator& ranks,
                              const Config& config, const std::string& data) {
  TrainingState state = collectively(
      ranks, [&] { return fitting_state(path, config, ranks.rank() == 0 ? &data : nullptr); });
  check_same_contents(path, ranks);
  return state;
}

std::string fingerprint_of(const Config& config, const std::string& data) {
  std::string text = data;
  // Keys with their defaults do not count, so that a new key changes no fingerprint.
  for (const Setting& setting : settings())
    if (is_fixed(setting, !data.empty()) && !setting.is_default(config))
      text += fmt::format("{} = {}\n", setting.key, setting.get(config).dump());
  return fmt::format("{:08x}", hash_of_text(text) & 0xffffffffu);
}

std::optional<std::filesystem::path> checkpoint_to_continue(const Config& config, bool must_exist) {
  const std::filesystem::path directory = config.checkpoint.directory;
  const std::vector<std::filesystem::path> trainings = trainings_in(directory);
  const std::string data =
      trainings.empty() ? "" : sample_checksums(config.data, make_model(config));
  std::vector<std::string> found;
  Outcome other;
  for (const std::filesystem::path& training : trainings) {
    std::string newest;
    const Outcome read = outcome_of([&] { newest = newest_complete(training)->string(); });
    if (read.failed()) {
      const std::string theirs = fingerprint_in(training.filename()),
                        own = fingerprint_of(config, data);
      const bool is_renamed = theirs.size() != own.size();
      if (theirs == own || is_renamed) throw Error(read.code, read.message);
      log_warning(read.message + "; going on without this training");
      continue;
    }
    const Outcome fits = outcome_of([&] { fitting_state(newest, config, &data); });
    if (!fits.failed())
      found.push_back(newest);
    else if (!other.failed())
      other = fits;
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1)
    throw Error(ExitCode::usage,
                "{}: has {} trainings that this run may resume: choose one with "
                "--resume {}",
                directory.string(), found.size(), join(found, " or --resume "));
  if (!other.failed()) check_has_no_hdf5(directory);
  if (must_exist && other.failed()) throw Error(other.code, other.message);
  if (must_exist)
    throw Error(ExitCode::usage, "--resume: there is no checkpoint in {}", directory.string());
  if (other.failed()) log_warning(other.message + "; a new training begins");
  return std::nullopt;
}

}  // namespace tessera
