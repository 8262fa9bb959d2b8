// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <limits>
#include <random>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/trainings.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// Returns infinity for a file that cannot be read or has no finite loss, so it is never the best.
double loss_of(const fs::path& file) {
  double loss = NAN;
  outcome_of([&] {
    const TrainingState state = read_state(file.string());
    loss = state.loss(state.config.value("/data/validation_samples"_json_pointer, 0) > 0);
  });
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string checkpoint_name(Size step) { return fmt::format("step_{:010}.safetensors", step); }

std::optional<Size> step_of_checkpoint(const std::string& name) {
  constexpr std::string_view begin = "step_";
  if (!name.starts_with(begin)) return std::nullopt;
  Size step = -1;
  std::from_chars(name.data() + begin.size(), name.data() + name.size(), step);
  return step >= 0 && name == checkpoint_name(step) ? std::optional(step) : std::nullopt;
}

bool is_name_of_store(const std::string& name) {
  const fs::path path = name;
  return std::distance(path.begin(), path.end()) == 2 &&
         (step_of_checkpoint(path.filename()) || name.ends_with(unfinished));
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename());
  if (error)
    throw ConfigError("checkpoint.directory", directory.string(), "cannot be read: {}",
                      error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Size> steps_in(const fs::path& training, Size last) {
  std::vector<Size> steps;
  std::error_code unused;
  for (const std::string& name : names_in(training))
    if (const auto step = step_of_checkpoint(name);
        step && *step <= last && fs::exists(training / name, unused))
      steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

bool is_complete(const fs::path& file) {
  return !outcome_of([&] { read_state(file.string()); }).failed();
}

std::optional<fs::path> newest_complete(const fs::path& training) {
  Outcome newest;
  for (const Size step : steps_in(training)) {
    const fs::path file = training / checkpoint_name(step);
    const Outcome outcome = outcome_of([&] { read_state(file.string()); });
    if (!outcome.failed()) {
      if (newest.failed())
        log_warning(fmt::format("{}; taking {}, the newest one that is complete", newest.message,
                                file.filename().string()));
      return file;
    }
    if (!newest.failed()) newest = outcome;
  }
  if (newest.failed()) throw Error(newest.code, newest.message);
  return std::nullopt;
}

std::vector<fs::path> trainings_in(const fs::path& directory) {
  std::vector<fs::path> trainings;
  std::error_code unused;
  if (!fs::is_directory(directory, unused)) return trainings;
  for (const std::string& name : names_in(directory)) {
    std::error_code error;
    const bool is_folder = fs::is_directory(directory / name, error);
    if (error && error != std::errc::no_such_file_or_directory)
      throw ConfigError("checkpoint.directory", directory.string(), "cannot be read: {}",
                        error.message());
    if (is_folder && !steps_in(directory / name).empty()) trainings.push_back(directory / name);
  }
  return trainings;
}

fs::path make_training(const fs::path& directory, const std::string& fingerprint) {
  std::random_device draw;
  for (;;) {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    const fs::path training = directory / fmt::format("{}-{:%Y%m%d-%H%M%S}-{:04x}", fingerprint,
                                                      fmt::gmtime(now), draw() & 0xffff);
    std::error_code error;
    if (fs::create_directory(training, error)) return training;
    if (error)
      throw ConfigError("checkpoint.directory", directory.string(), "cannot hold checkpoints: {}",
                        error.message());
  }
}

std::string fingerprint_in(const std::string& training) {
  return training.substr(0, training.find('-'));
}

void remove_unfinished(const fs::path& directory) {
  // Locks of some file systems hold on one host only.
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const std::string& name : names_in(directory)) {
    const fs::path training = directory / name;
    std::error_code unused;
    const bool has_our_name = std::ranges::count(name, '-') == 3;  // as make_training() gives it
    if (!has_our_name || !fs::is_directory(training, unused)) continue;
    outcome_of([&] {
      const OpenFile folder(training, O_RDONLY | O_DIRECTORY);
      const std::vector<std::string> files = names_in(training);
      const bool is_unfinished = std::ranges::all_of(files, [&](const std::string& file) {
        return (file.starts_with("step_") || file.starts_with("trial.")) &&
               file.ends_with(unfinished) && fs::last_write_time(training / file) < yesterday;
      });
      if (files.empty() || !is_unfinished || folder.lock() != Lock::taken) return;
      for (const std::string& file : files) fs::remove(training / file, unused);
      fs::remove(training, unused);
    });
  }
}

std::vector<Size> steps_by_loss(const fs::path& training, std::vector<Size> steps) {
  std::vector<std::pair<double, Size>> losses;
  for (const Size step : steps)
    if (const double loss = loss_of(training / checkpoint_name(step)); std::isfinite(loss))
      losses.emplace_back(loss, step);
  std::sort(losses.begin(), losses.end());
  steps.clear();
  for (const auto& [loss, step] : losses) steps.push_back(step);
  return steps;
}

void remove_old(const fs::path& training, Size last, Size keep, Size keep_best) {
  std::vector<Size> steps = steps_in(training, last);
  if (keep == 0 || std::ssize(steps) <= keep) return;
  auto after = steps.begin();  // the checkpoints to keep
  for (Size complete = 0; complete < keep && after != steps.end(); ++after)
    complete += is_complete(training / checkpoint_name(*after)) ? 1 : 0;
  steps.erase(steps.begin(), after);
  const std::vector<Size> best =
      keep_best > 0 ? steps_by_loss(training, steps) : std::vector<Size>{};
  const auto end = best.begin() + std::min(keep_best, std::ssize(best));
  std::error_code unused;
  for (const Size step : steps)
    if (std::find(best.begin(), end, step) == end)
      fs::remove(training / checkpoint_name(step), unused);
}

}  // namespace tessera
