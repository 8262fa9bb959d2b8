// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/io/file_uses.hpp>
#include <tessera/tensor/mesh_shape.hpp>

#include "measure/case_run.hpp"
#include "results/case_result.hpp"
#include "study/study.hpp"

namespace tessera::bench {

/// The program of a launch, as its provenance tells.
struct Program {
  std::string git_revision, compiler, build_type;
  std::optional<bool> git_dirty;
  friend bool operator==(const Program&, const Program&) = default;

  TESSERA_FIELDS(git_revision, compiler, build_type, git_dirty);
};
struct LaunchProgram {
  Program program;
  std::string mpi_library;
};

/// Losses that cases are compared with: references/<hash>.json (bench/RESULTS.md).
struct Reference {
  std::optional<Size> lost;         ///< launches that ended while they computed it
  std::optional<LossCurve> losses;  ///< none: not computed yet; then nothing below counts
  std::optional<Size> ranks, microbatches;
  std::string strategy;
  std::optional<Size> asked_steps;                  ///< none: all
  nlohmann::json trials = nlohmann::json::array();  ///< that validated the ranks
  std::optional<double> seconds;

  /// Returns true if there are losses of so many steps; none means all.
  bool has_steps(const std::optional<Size>& steps) const {
    return losses && (!asked_steps || (steps && *steps <= *asked_steps));
  }

  static void fields(auto& f, auto& v) {
    f("schema_version", written(1), "lost", v.lost, "losses", v.losses, "ranks",
      in_range(v.ranks, 1, most_ranks), "microbatches", v.microbatches, "strategy", v.strategy,
      "asked_steps", v.asked_steps, "trials", v.trials, "seconds", v.seconds);
  }
};

/// The lock (flock) of a case, held by the process that runs it until its last copy ends; null if
/// it is not held. The system releases it when the process ends, so that a case of a killed launch
/// can run again at once.
using CaseLock = std::shared_ptr<const int>;

enum class LockState {
  free,
  held,
  unknown,  ///< the file system has no locks
};

/// The files of a study's results (bench/RESULTS.md). Every file is written under a temporary name
/// and then renamed, so that a killed job leaves complete files only.
class ResultsDirectory {
 public:
  explicit ResultsDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

  /// Reads a document by its name in the directory; none if there is no file. This function and the
  /// following ones throw Error (usage) for a damaged file.
  std::optional<StoredDocument> read(const std::string& name) const {
    return StoredDocument::read(path_ / name);
  }
  void write(const std::string& name, const nlohmann::json& document) const;

  /// Returns the files of the results for check_distinct(). `key` is the flag that names the
  /// directory.
  std::vector<FileUse> uses(const std::string& key, bool writes) const;

  /// Returns the study as far as its document has it. Throws Error (usage) if there is none.
  StudyCases study() const;
  /// Returns true if the directory holds this study. Throws ConfigError if it holds another one, or
  /// if it holds this one and `may_exist` is false.
  bool check(const Study& study, bool may_exist) const;
  /// Also creates the directory with the study's document.
  void prepare(const StudyCases& study, bool may_exist) const;

  /// Returns the program of a launch; none if the launch has no file.
  std::optional<LaunchProgram> program(const std::string& launch) const;
  /// Reads the file `name` of a reference; without a file, it has no losses.
  Reference reference(const std::string& name) const;
  /// Returns the name of a file of a case.
  static std::string of_case(const std::string& id, const std::string& file) {
    return "cases/" + id + "/" + file;
  }
  /// Reads the latest attempt at a case, or that of another file.
  std::optional<CaseResult> result(const std::string& id,
                                   const std::string& file = "result.json") const;
  /// Reads an earlier attempt, counted from 1.
  std::optional<CaseResult> attempt(const std::string& id, Size number) const {
    return result(id, attempt_file(number));
  }
  void write_result(const CaseResult& result) const {
    write(of_case(result.id, "result.json"), result);
  }
  void write_steps(const CaseResult& result, const std::vector<std::vector<double>>& rounds) const {
    write(of_case(result.id, "steps.json"),
          {{"schema_version", 1}, {"attempt", result.attempt}, {"rounds", rounds}});
  }
  /// Reads the step times of each round.
  std::vector<std::vector<double>> steps(const std::string& id) const;
  /// Copies the present result to the earlier attempts, and returns the number of the next attempt.
  Size begin_attempt(const std::string& id) const;

  /// Takes the lock of this file; null if another process or another CaseLock holds it. On a file
  /// system without locks, it always succeeds. Throws Error (usage) if the file cannot be created.
  CaseLock take(const std::string& lock) const;
  CaseLock take_case(const std::string& id) const { return take(of_case(id, "lock")); }
  /// Returns true if locks work on this file system.
  bool has_locks() const;
  /// Returns the status of a case: that of its result, or "pending" without a result or if a dead
  /// launch has left it "running".
  std::string status(const std::string& id, const std::optional<CaseResult>& result,
                     double case_seconds) const;

 private:
  static std::string attempt_file(Size number) {
    return "attempts/" + std::to_string(number) + ".json";
  }

  std::filesystem::path path_;
};

/// Throws ConfigError if the study or a case reads a file that the results would replace.
void check_results_apart(const StudyCases& work, const std::string& machine,
                         const ResultsDirectory& results);

/// Returns true if a launch still runs a case with the status "running". Without locks, it decides
/// by the time since `started`.
bool still_runs(LockState lock, const std::string& started, double case_seconds);

/// Returns the seconds after which the launch of a "running" case must have ended.
double longest_run(double case_seconds);

}  // namespace tessera::bench
