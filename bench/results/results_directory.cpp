// SPDX-License-Identifier: Apache-2.0
#include "results/results_directory.hpp"

#include <ctime>
#include <iomanip>
#include <sstream>

#include <tessera/base/error.hpp>
#include <tessera/io/whole_file.hpp>

#include "results/stored_checks.hpp"

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

}  // namespace

void ResultsDirectory::write(const std::string& name, const Json& document) const {
  make_directories((path_ / name).parent_path());
  write_json(path_ / name, document);
}

Json ResultsDirectory::study() const {
  const std::optional<StoredDocument> study = read("study.json");
  if (!study) throw Error(ExitCode::usage, path_.string() + ": contains no study results");
  check_study(*study);
  return study->json();
}

std::optional<Json> ResultsDirectory::launch(const std::string& name) const {
  const std::optional<StoredDocument> launch = read("launches/" + name + ".json");
  if (!launch) return std::nullopt;
  check_launch(*launch);
  return launch->json();
}

Reference ResultsDirectory::reference(const std::string& name) const {
  const std::optional<StoredDocument> reference = read(name);
  return reference ? read_reference(*reference) : Reference();
}

std::optional<CaseResult> ResultsDirectory::read_result(const std::string& id,
                                                        const std::string& file) const {
  const std::optional<StoredDocument> result = read(of_case(id, file));
  if (!result) return std::nullopt;
  return read_case_result(*result, id);
}

bool ResultsDirectory::check(const Json& study, bool may_exist) const {
  std::error_code error;
  const bool is_there = fs::exists(path_ / "study.json", error);
  if (error) throw ConfigError("-o", path_.string(), "cannot be read: " + error.message());
  if (!is_there) return false;
  if (!may_exist)
    throw ConfigError(
        "-o", path_.string(),
        "already holds results: use --resume to continue with them, or choose another directory");
  const Json present = this->study();
  const bool is_small = value_or(present, "small", false);
  const std::string name = present.at("name");
  if (study.at("name") != name || study.at("small") != is_small)
    throw ConfigError("-o", path_.string(),
                      "holds results of another study: " + name + (is_small ? " (small)" : ""));
  return true;
}

void ResultsDirectory::prepare(const Json& study, bool may_exist) const {
  check(study, may_exist);
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
  check_steps(*document);
  return document->json().at("rounds");
}

std::optional<CaseLock> ResultsDirectory::take(const std::string& lock) const {
  const fs::path file = path_ / lock;
  make_directories(file.parent_path());
  return CaseLock::take(file);
}

std::optional<CaseLock> ResultsDirectory::take_case(const std::string& id) const {
  return take(of_case(id, "lock"));
}

bool ResultsDirectory::has_locks() const {
  return lock_state(path_ / "study.json") != LockState::unknown;
}

std::string ResultsDirectory::status(const std::string& id, const std::optional<CaseResult>& result,
                                     double case_seconds) const {
  if (!result) return "pending";
  if (result->status != "running") return result->status;
  const LockState lock = lock_state(path_ / of_case(id, "lock"));
  return is_run(lock, result->started, case_seconds) ? "running" : "pending";
}

bool is_run(LockState lock, const std::string& started, double case_seconds) {
  if (lock != LockState::unknown) return lock == LockState::held;
  return seconds_since(started) < longest_run(case_seconds);
}

double longest_run(double case_seconds) { return 2 * case_seconds + 60; }

}  // namespace tessera::bench
