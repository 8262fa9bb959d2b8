// SPDX-License-Identifier: Apache-2.0
// Journals: what launches have begun and ended, a line of JSON for each. All results of a study are
// derived from them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/io/durable_file.hpp>

#include "measure/case_run.hpp"
#include "results/case_result.hpp"

namespace tessera::bench {

/// Losses that cases are compared with.
struct Reference {
  LossCurve losses;
  std::string mesh;
  Size microbatches = 1;
  std::optional<Size> asked_steps;
  double seconds = 0;

  /// Returns true if there are losses of so many steps; none means all.
  bool has_steps(const std::optional<Size>& steps) const {
    return !asked_steps || (steps && *steps <= *asked_steps);
  }

  static void fields(auto& f, auto& v) {
    f("losses", v.losses, "of its steps, epochs and validations");
    f("mesh", v.mesh, "of the ranks that computed them: data=1", required);
    f("microbatches", v.microbatches, "of a step");
    f("asked_steps", v.asked_steps, "verify.steps; null: all");
    f("seconds", v.seconds, "it took");
  }
};

/// The first line of a journal.
struct Chosen {
  std::vector<std::string> runs;
  std::optional<Size> give_up;

  static void fields(auto& f, auto& v) {
    f("runs", v.runs, "the cases that the launch runs");
    f("give_up", v.give_up, "N of --give-up N");
  }
};

/// A round of a case begins, or a reference.
struct Begin {
  std::string what;
  Size round = 0;
  std::vector<std::string> instead_of{};

  static void fields(auto& f, auto& v) {
    f("begin", v.what, "id of a case, or name of a reference", required);
    f("round", v.round, "in this launch");
    f("instead_of", v.instead_of, "launches whose lines about it count no longer");
  }
};

/// It has ended.
struct End {
  std::string what;
  Size round = 0;
  std::string time{};
  double seconds = 0;
  bool last = false;
  std::optional<Round> block{};
  std::vector<double> steps{};
  std::optional<CaseResult> result{};
  std::optional<Reference> reference{};
  std::optional<Size> give_up{};

  static void fields(auto& f, auto& v) {
    f("end", v.what, "as in its begin", required);
    f("round", v.round);
    f("time", v.time, "UTC");
    f("seconds", v.seconds, "of the case in this launch");
    f("last", v.last, "the launch runs no further round of the case");
    f("block", v.block, "the round's times; null: it failed before");
    f("steps", v.steps, "seconds of each step of the block");
    f("result", v.result, "what holds for all rounds; in the first one, and one that failed");
    f("reference", v.reference, "losses");
    f("give_up", v.give_up, "counts while so many launches have ended during the case");
  }
};

/// The journal that a process writes: launches/<name>.journal. Every line is on the disk before
/// append() returns, so that a process or a machine that dies leaves whole lines and at most one
/// without its end.
class Journal {
 public:
  /// Creates the file with its first line. Throws Error (usage) if it exists or cannot be written.
  Journal(const std::filesystem::path& results, const std::string& name, const Chosen& chosen);

  /// Throws Error (usage) if the line cannot be written, and then the journal is as before.
  void append(const Begin& line) { append(nlohmann::json(line)); }
  void append(const End& line) { append(nlohmann::json(line)); }

 private:
  void append(const nlohmann::json& line);

  OpenFile file_;
  Size size_;
};

/// The lines of one launch about a case or a reference.
struct LaunchLines {
  bool counts_anew = false;  ///< it chose the case without --give-up
  std::vector<Begin> begins{};
  std::map<Size, End> ends{};  ///< by round

  /// Returns the number of rounds that have begun and not ended.
  Size crashes() const;
};

/// All journals of a results directory.
struct Journals {
  /// Maps each case or reference, and then each launch, to its lines. Names of launches begin with
  /// their time.
  std::map<std::string, std::map<std::string, LaunchLines>> lines{};
  std::map<std::string, Chosen> launches{};
  Size bytes = 0;  ///< of all files

  /// Adds the text of a journal. A last line without its end does not count. Throws Error (usage)
  /// with file and line for one that cannot be used.
  void add(const std::string& launch, const std::string& text, const std::string& file);
};

/// Reads all journals; none if the directory has no launch. Throws Error (usage) for a damaged one,
/// and for launches of tessera-bench 0.2, which wrote none.
Journals read_journals(const std::filesystem::path& results);

/// Returns the bytes of all journals.
Size journal_bytes(const std::filesystem::path& results);

/// A case, derived from the lines of all launches.
struct CaseHistory {
  CaseResult result{};                       ///< "pending" without a complete round
  std::vector<std::vector<double>> steps{};  ///< step times of each round
  std::vector<std::string> launches{};       ///< that have lines which count
};

/// Derives a case from the lines about it. A round counts if it is complete, whichever launch ran
/// it; rounds of launches that another one replaced do not. The result is that of the latest launch
/// that has one. Its `crashes` are the rounds that have begun and not ended since a launch last
/// tried the case without --give-up. A measured result still lacks what follows from its rounds.
CaseHistory history_of(const Journals& journals, const std::string& id);

/// Returns the reference with the most steps; none if there is none.
std::optional<Reference> reference_of(const Journals& journals, const std::string& name);

/// Returns how many launches have ended while they computed a reference, counted like crashes of a
/// case. Only launches that chose one of these cases count: others may be computing it now.
Size crashes_of_reference(const Journals& journals, const std::string& name,
                          const std::vector<const Case*>& cases);

}  // namespace tessera::bench
