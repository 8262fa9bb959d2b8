// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
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

/// The program of a launch, from its provenance.
struct Program {
  std::string git_revision, compiler, build_type;
  std::optional<bool> git_dirty;
  friend bool operator==(const Program&, const Program&) = default;

  static void fields(auto& f, auto& v) {
    f("git_revision", v.git_revision);
    f("compiler", v.compiler);
    f("build_type", v.build_type);
    f("git_dirty", v.git_dirty);
  }
};
struct LaunchProgram {
  Program program;
  std::string mpi_library;
};

/// The files of a study's results (bench/RESULTS.md), but the journals. Every file is written under
/// a temporary name and then renamed, so that a killed job leaves complete files only.
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

  /// Returns the study with the members that its document has. Throws Error (usage) if there is no
  /// document.
  StudyCases study() const;
  /// Returns true if the directory holds this study. Throws ConfigError if it holds another one, or
  /// if it holds this one and `may_exist` is false.
  bool check(const Study& study, bool may_exist) const;
  /// Also creates the directory with the study's document.
  void prepare(const StudyCases& study, bool may_exist) const;

  /// Returns the program of a launch; none if the launch has no file.
  std::optional<LaunchProgram> program(const std::string& launch) const;
  /// Returns the name of a file of a case.
  static std::string of_case(const std::string& id, const std::string& file) {
    return "cases/" + id + "/" + file;
  }

 private:
  std::filesystem::path path_;
};

/// Throws ConfigError if the study or a case reads a file that the results would replace.
void check_results_apart(const StudyCases& work, const std::string& machine,
                         const ResultsDirectory& results);

}  // namespace tessera::bench
