// SPDX-License-Identifier: Apache-2.0
#include "results/results_directory.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw ConfigError("-o", path.string(), "cannot be created: " + error.message());
}

constexpr std::array<std::string_view, 5> top_files{"study.json", "summary.json", "cases.csv",
                                                    "steps.csv", "figures_of_merit.txt"};
constexpr std::array<std::string_view, 3> folders{"cases/", "launches/", "tensorboard/"};

bool is_in_folder(const std::string& name) {
  return std::ranges::any_of(folders, [&](auto folder) { return name.starts_with(folder); });
}

}  // namespace

std::vector<FileUse> ResultsDirectory::uses(const std::string& key, bool writes) const {
  std::vector<FileUse> uses{{key, path_, writes, is_in_folder}};
  for (const std::string_view name : top_files) uses.push_back({key, path_ / name, writes});
  return uses;
}

void ResultsDirectory::write(const std::string& name, const Json& document) const {
  make_directories((path_ / name).parent_path());
  write_json(path_ / name, document);
}

StudyCases ResultsDirectory::study() const {
  const std::optional<StoredDocument> study = read("study.json");
  if (!study) throw Error(ExitCode::usage, path_.string() + ": contains no study results");
  return study->as<StudyCases>();
}

std::optional<LaunchProgram> ResultsDirectory::program(const std::string& launch) const {
  const std::optional<StoredDocument> document = read("launches/" + launch + ".json");
  if (!document) return std::nullopt;
  const StoredDocument provenance = (*document)["provenance"];
  return LaunchProgram{provenance.as<Program>(), provenance["mpi"]["library"].as<std::string>()};
}

bool ResultsDirectory::check(const Study& study, bool may_exist) const {
  std::error_code error;
  const bool is_there = fs::exists(path_ / "study.json", error);
  if (error) throw ConfigError("-o", path_.string(), "cannot be read: " + error.message());
  if (!is_there) return false;
  if (!may_exist)
    throw ConfigError(
        "-o", path_.string(),
        "already holds results: use --resume to continue with them, or choose another directory");
  const Study present = this->study().study;
  if (study.name != present.name || study.small != present.small)
    throw ConfigError(
        "-o", path_.string(),
        "holds results of another study: " + present.name + (present.small ? " (small)" : ""));
  return true;
}

void ResultsDirectory::prepare(const StudyCases& study, bool may_exist) const {
  check(study.study, may_exist);
  write("study.json", study);
}

void check_results_apart(const StudyCases& work, const std::string& machine,
                         const ResultsDirectory& results) {
  std::vector<FileUse> uses = inputs_of(work, machine);
  const std::vector<FileUse> outputs = results.uses("-o", true);
  uses.insert(uses.end(), outputs.begin(), outputs.end());
  check_distinct(uses);
}

}  // namespace tessera::bench
