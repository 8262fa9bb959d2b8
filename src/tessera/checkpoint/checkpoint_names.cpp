// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/checkpoint/checkpoint_names.hpp>

namespace tessera {

namespace fs = std::filesystem;

std::string checkpoint_name(Size step) { return fmt::format("step_{:010}.h5", step); }

std::optional<Size> step_of_checkpoint(const std::string& name) {
  constexpr std::string_view begin = "step_";
  if (!name.starts_with(begin)) return std::nullopt;
  Size step = -1;
  std::from_chars(name.data() + begin.size(), name.data() + name.size(), step);
  return step >= 0 && name == checkpoint_name(step) ? std::optional(step) : std::nullopt;
}

bool is_name_of_store(const std::string& name) {
  return step_of_checkpoint(name) || name.ends_with(unfinished) || name == "latest" ||
         name == "lock" || name.starts_with("lock.");
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    files.push_back(entry->path());
  if (error)
    throw ConfigError("checkpoint.directory", directory.string(), "cannot be read: {}",
                      error.message());
  return files;
}

std::vector<fs::path> checkpoints_in(const fs::path& directory) {
  std::vector<std::pair<Size, fs::path>> found;
  for (const fs::path& path : files_in(directory)) {
    const std::optional<Size> step = step_of_checkpoint(path.filename().string());
    std::error_code unused;
    const bool is_broken = fs::is_symlink(path, unused) && !fs::exists(path, unused);
    if (step && !is_broken) found.emplace_back(*step, path);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::string new_training() {
  std::random_device draw;
  return fmt::format("{:08x}{:08x}{:08x}", draw(), draw(), draw());
}

std::string new_branch(const std::string& training, Size step) {
  return fmt::format("{}/{}-{:08x}", training, step, std::random_device()());
}

bool are_related(std::string_view training, std::string_view other) {
  return training.substr(0, training.find('/')) == other.substr(0, other.find('/'));
}

bool has_passed(std::string_view training, std::string_view other, Size step) {
  if (training == other) return true;
  if (!training.starts_with(other)) return false;
  const std::string_view branch = training.substr(other.size());
  if (!branch.starts_with('/')) return false;
  Size begin = -1;
  std::from_chars(branch.data() + 1, branch.data() + branch.size(), begin);
  return step <= begin;
}

}  // namespace tessera
