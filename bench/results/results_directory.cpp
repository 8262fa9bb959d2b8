// SPDX-License-Identifier: Apache-2.0
#include "results/results_directory.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <unistd.h>

#include <tessera/app/result_file.hpp>
#include <tessera/base/error.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<Json> read(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  Json document = Json::parse(file, nullptr, false);
  if (document.is_discarded()) return std::nullopt;
  return document;
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw ConfigError("-o", path.string(), "cannot be created: " + error.message());
}

void write(const fs::path& path, const Json& document) {
  make_directories(path.parent_path());
  write_json(path, document);
}

/// Seconds since a time like "2026-11-20T14:03:12Z".
double seconds_since(const std::string& utc) {
  std::tm time{};
  std::istringstream(utc) >> std::get_time(&time, "%Y-%m-%dT%H:%M:%SZ");
  return std::difftime(std::time(nullptr), timegm(&time));
}

}  // namespace

Json ResultsDirectory::study() const {
  const std::optional<Json> study = read(path_ / "study.json");
  if (!study) throw Error(ExitCode::usage, path_.string() + ": contains no study results");
  return *study;
}

void ResultsDirectory::prepare(const Json& study, bool may_exist) const {
  if (fs::exists(path_ / "study.json")) {
    if (!may_exist)
      throw ConfigError(
          "-o", path_.string(),
          "already holds results: use --resume to continue with them, or choose another directory");
    const Json present = this->study();
    if (present.value("name", "") != study.at("name") ||
        present.value("small", false) != study.at("small"))
      throw ConfigError("-o", path_.string(),
                        "holds results of another study: " + present.value("name", "") +
                            (present.value("small", false) ? " (small)" : ""));
  }
  write(path_ / "study.json", study);
}

void ResultsDirectory::write_launch(const Json& launch) const {
  write(path_ / "launches" / (launch.at("name").get<std::string>() + ".json"), launch);
}

Json ResultsDirectory::launch(const std::string& name) const {
  return read(path_ / "launches" / (name + ".json")).value_or(Json::object());
}

std::string ResultsDirectory::reference_name(const std::string& key) {
  return "references/" + key + ".json";
}

std::optional<Json> ResultsDirectory::reference(const std::string& key) const {
  return read(path_ / reference_name(key));
}

std::optional<Json> ResultsDirectory::result(const std::string& id) const {
  return read(of_case(id) / "result.json");
}

void ResultsDirectory::write_result(const std::string& id, const Json& result) const {
  write(of_case(id) / "result.json", result);
}

Size ResultsDirectory::begin_attempt(const std::string& id) const {
  const fs::path directory = of_case(id);
  const std::optional<Json> present = result(id);
  if (!present) return 1;
  const Size number = present->value("attempt", Size{1});
  // A copy: a job that dies here has lost nothing.
  write(directory / "attempts" / (std::to_string(number) + ".json"), *present);
  return number + 1;
}

std::vector<double> ResultsDirectory::steps(const std::string& id) const {
  const std::optional<Json> document = read(of_case(id) / "steps.json");
  if (!document || !document->contains("seconds")) return {};
  return document->at("seconds").get<std::vector<double>>();
}

void ResultsDirectory::write_steps(const std::string& id, Size attempt,
                                   const std::vector<double>& seconds) const {
  write(of_case(id) / "steps.json",
        {{"schema_version", 1}, {"attempt", attempt}, {"seconds", seconds}});
}

void ResultsDirectory::write_trace(const std::string& id,
                                   const nlohmann::json& chrome_trace) const {
  write(of_case(id) / "trace.json", chrome_trace);
}

void ResultsDirectory::write_text(const std::string& name, const std::string& text) const {
  const fs::path temporary = path_ / (name + ".partial-" + std::to_string(getpid()));
  errno = 0;
  std::ofstream file(temporary);
  file << text;
  file.close();
  if (!file || std::rename(temporary.c_str(), (path_ / name).c_str()) != 0)
    throw Error(ExitCode::usage, "cannot write " + (path_ / name).string() + ": " +
                                     (errno != 0 ? std::strerror(errno) : "disk full"));
}

void ResultsDirectory::write_document(const std::string& name, const Json& document) const {
  write(path_ / name, document);
}

std::optional<CaseLock> ResultsDirectory::take_case(const std::string& id) const {
  make_directories(of_case(id));
  return CaseLock::take(of_case(id) / "lock");
}

bool ResultsDirectory::has_locks() const {
  return lock_state(path_ / "study.json") != LockState::unknown;
}

std::string ResultsDirectory::status(const std::string& id, const std::optional<Json>& result,
                                     double case_seconds) const {
  if (!result) return "pending";
  const std::string status = result->value("status", "pending");
  if (status != "running") return status;
  const LockState lock = lock_state(of_case(id) / "lock");
  return is_run(lock, result->value("started", ""), case_seconds) ? "running" : "pending";
}

bool is_run(LockState lock, const std::string& started, double case_seconds) {
  if (lock != LockState::unknown) return lock == LockState::held;
  return seconds_since(started) < longest_run(case_seconds);
}

double longest_run(double case_seconds) { return 2 * case_seconds + 60; }

}  // namespace tessera::bench
