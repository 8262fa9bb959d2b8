// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "results/case_lock.hpp"
#include "results/stored_document.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// The files of a study's results (bench/RESULTS.md). Every one is written to a temporary name and
/// renamed, so a job that is killed at any moment leaves whole files only.
class ResultsDirectory {
 public:
  explicit ResultsDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

  /// A document by its name below the directory; none if there is no file. This and what follows
  /// throws Error (usage) for a file that is damaged.
  std::optional<StoredDocument> read(const std::string& name) const {
    return StoredDocument::read(path_ / name);
  }
  void write(const std::string& name, const nlohmann::json& document) const;

  /// Throws Error (usage) if there is none.
  nlohmann::json study() const;
  /// Returns true if the directory holds this study. Throws ConfigError if it holds another one, or
  /// if it holds this one and `may_exist` is false.
  bool check(const nlohmann::json& study, bool may_exist) const;
  /// The same, and creates the directory with the study's document.
  void prepare(const nlohmann::json& study, bool may_exist) const;

  std::optional<nlohmann::json> launch(const std::string& name) const;
  /// Reads the file `name` of a reference; none if there is no such file.
  std::optional<nlohmann::json> reference(const std::string& name) const;
  /// The name of a file of a case.
  static std::string of_case(const std::string& id, const std::string& file) {
    return "cases/" + id + "/" + file;
  }
  /// The latest attempt at a case.
  std::optional<nlohmann::json> result(const std::string& id) const {
    return checked_result(id, "result.json");
  }
  /// An earlier one, counted from 1.
  std::optional<nlohmann::json> attempt(const std::string& id, Size number) const {
    return checked_result(id, attempt_file(number));
  }
  void write_result(const nlohmann::json& result) const {
    write(of_case(result.at("id"), "result.json"), result);
  }
  /// Step times of each round.
  std::vector<std::vector<double>> steps(const std::string& id) const;
  /// Keeps the present result as an earlier attempt; returns the number of the next one.
  Size begin_attempt(const std::string& id) const;

  /// For as long as a launch works on what this file belongs to; none if another one does.
  std::optional<CaseLock> take(const std::string& lock) const;
  /// For the time of an attempt at a case; none if another launch is running it.
  std::optional<CaseLock> take_case(const std::string& id) const;
  /// Whether locks work on this file system.
  bool has_locks() const;
  /// Status of a case as the summary shows it: that of its result, or "pending" if there is none or
  /// a launch that is dead has left it "running".
  std::string status(const std::string& id, const std::optional<nlohmann::json>& result,
                     double case_seconds) const;

 private:
  std::optional<nlohmann::json> checked_result(const std::string& id,
                                               const std::string& file) const;
  static std::string attempt_file(Size number) {
    return "attempts/" + std::to_string(number) + ".json";
  }

  std::filesystem::path path_;
};

/// Whether a case with the status "running" is still being run. Where there are no locks, time has
/// to tell.
bool is_run(LockState lock, const std::string& started, double case_seconds);

/// Seconds after which a case that is still "running" must have been left behind.
double longest_run(double case_seconds);

}  // namespace tessera::bench
