// SPDX-License-Identifier: Apache-2.0
#include "results/results_directory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

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

/// Seconds since a time like "2026-11-20T14:03:12Z".
double seconds_since(const std::string& utc) {
  std::tm time{};
  std::istringstream(utc) >> std::get_time(&time, "%Y-%m-%dT%H:%M:%SZ");
  return std::difftime(std::time(nullptr), timegm(&time));
}

LockState try_lock(int file, int kind) {
  if (flock(file, kind | LOCK_NB) == 0) return LockState::free;
  return errno == EWOULDBLOCK ? LockState::held : LockState::unknown;
}

/// Reads the result of the case `id`. Throws Error (usage) with file and key for a value that
/// readers cannot use.
CaseResult read_case_result(const StoredDocument& document, const std::string& id) {
  const auto result = document.as<CaseResult>();
  if (result.id != id) document["id"].fail("must be the name of its directory, " + id);
  if (const StoredDocument nodes = document["case"]["nodes"]["count"]; !nodes.is_unknown())
    nodes.integer(1, most_ranks);
  for (const StoredDocument& section : document["config"].parts(false)) section.parts(false);
  if (result.status == "failed" || result.status == "timeout" || result.status == "oom")
    document["exit_code"].integer(1, 255);
  if (result.is_measured()) {
    document["step_seconds"]["median"].number();
    document["samples_per_second"].number();
  }
  return result;
}

LockState lock_state(const std::filesystem::path& file) {
  const int handle = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (handle < 0) return LockState::free;
  const LockState state = try_lock(handle, LOCK_SH);
  close(handle);
  return state;
}

constexpr std::array<std::string_view, 5> top_files{"study.json", "summary.json", "cases.csv",
                                                    "steps.csv", "figures_of_merit.txt"};
constexpr std::array<std::string_view, 4> folders{"cases/", "launches/", "references/",
                                                  "tensorboard/"};

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

Reference ResultsDirectory::reference(const std::string& name) const {
  const std::optional<StoredDocument> reference = read(name);
  return reference ? reference->as<Reference>() : Reference();
}

std::optional<CaseResult> ResultsDirectory::result(const std::string& id,
                                                   const std::string& file) const {
  const std::optional<StoredDocument> result = read(of_case(id, file));
  if (!result) return std::nullopt;
  return read_case_result(*result, id);
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

Size ResultsDirectory::begin_attempt(const std::string& id) const {
  const std::optional<CaseResult> present = result(id);
  if (!present) return 1;
  const Size number = present->attempt;
  // A copy, so that a job that dies here loses nothing.
  write(of_case(id, attempt_file(number)), *present);
  return number + 1;
}

std::vector<std::vector<double>> ResultsDirectory::steps(const std::string& id) const {
  const std::optional<StoredDocument> document = read(of_case(id, "steps.json"));
  if (!document) return {};
  const StoredDocument rounds = (*document)["rounds"];
  auto steps = rounds.as<std::vector<std::vector<double>>>();
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (std::any_of(steps[i].begin(), steps[i].end(), [](double s) { return std::isnan(s); }))
      rounds.parts(true)[i].fail("must be a list of numbers");
  return steps;
}

CaseLock ResultsDirectory::take(const std::string& lock) const {
  const fs::path file = path_ / lock;
  make_directories(file.parent_path());
  const int handle = open(file.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
  if (handle < 0)
    throw Error(ExitCode::usage, "cannot write " + file.string() + ": " + std::strerror(errno));
  const CaseLock held(new int(handle), [](const int* own) {
    close(*own);
    delete own;
  });
  // lock_state() holds a shared lock for a moment.
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (try_lock(handle, LOCK_EX) != LockState::held) return held;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return nullptr;
}

bool ResultsDirectory::has_locks() const {
  return lock_state(path_ / "study.json") != LockState::unknown;
}

std::string ResultsDirectory::status(const std::string& id, const std::optional<CaseResult>& result,
                                     double case_seconds) const {
  if (!result) return "pending";
  if (result->status != "running") return result->status;
  const LockState lock = lock_state(path_ / of_case(id, "lock"));
  return still_runs(lock, result->started, case_seconds) ? "running" : "pending";
}

void check_results_apart(const StudyCases& work, const std::string& machine,
                         const ResultsDirectory& results) {
  std::vector<FileUse> uses = inputs_of(work, machine);
  const std::vector<FileUse> outputs = results.uses("-o", true);
  uses.insert(uses.end(), outputs.begin(), outputs.end());
  check_distinct(uses);
}

bool still_runs(LockState lock, const std::string& started, double case_seconds) {
  if (lock != LockState::unknown) return lock == LockState::held;
  return seconds_since(started) < longest_run(case_seconds);
}

double longest_run(double case_seconds) { return 2 * case_seconds + 60; }

}  // namespace tessera::bench
