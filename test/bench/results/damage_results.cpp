// SPDX-License-Identifier: Apache-2.0
// Damages every key of every document and of every kind of line of the journals of a results
// directory, and truncates each. Every reader of results must then succeed or fail with one line
// that names the file.
// Usage: damage_results DIRECTORY STUDY.toml   (the study of the directory)
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/process/outcome.hpp>

#include "results/summary.hpp"
#include "run/console.hpp"
#include "run/launch.hpp"
#include "run/reference_plan.hpp"
#include "run/references.hpp"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using namespace tessera;
using namespace tessera::bench;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Reads a results directory as the programs of a study do, one after the other.
class Readers {
 public:
  Readers(const fs::path& directory, const fs::path& sound, const std::string& study_file)
      : directory_(directory.string()),
        sound_(sound.string()),
        study_(load_study({.file = study_file})),
        cases_(make_cases(study_)) {
    options_.give_up = 1;
  }

  std::vector<std::function<void()>> all() const {
    return {[this] { summarize(); },
            [this] { comparison_text(compare_results(directory_, sound_)); },
            [this] { comparison_text(compare_results(sound_, directory_)); },
            [this] { select(); },
            [this] {
              results_.prepare({study_, cases_}, true);
            },
            [this] { judge(); }};
  }

 private:
  void summarize() const {
    const Results results = read_results(results_);
    const Summary summary = summarize_study(results);
    cases_csv(summary);
    steps_csv(results);
    summary_table(summary);
    figures_of_merit(summary);
    result_text(summary);
  }

  void select() const {
    const Journals journals = read_journals(directory_);
    for (const Case& point : cases_) {
      const CaseHistory history = history_of(journals, point.id);
      select_case(point, history.result, options_, study_, {2});
      for (const std::string& launch : history.launches) results_.program(launch);
    }
  }

  /// Compares losses with the references of the cases.
  void judge() const {
    const Journals journals = read_journals(directory_);
    for (const Case& point : cases_) {
      const auto reference = reference_of(journals, reference_name(point.config));
      if (!reference) continue;
      Verification verification;
      verification.losses.steps = {1, 2, 3, 4};
      judge_losses(verification, {reference}, "name", 1e-5);
    }
  }

  std::string directory_, sound_;
  ResultsDirectory results_{directory_};
  Study study_;
  std::vector<Case> cases_;
  RunOptions options_;
};

/// Adds the pointers of all values of a document, but of a list only the first two.
void add_places(const Json& value, const Json::json_pointer& at,
                std::vector<Json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) add_places(inner, at / key, places);
  if (value.is_array())
    for (std::size_t i = 0; i < std::min<std::size_t>(value.size(), 2); ++i)
      add_places(value[i], at / i, places);
}

/// Returns wrong values in place of this one: others of its type, and one that takes turns from
/// place to place.
std::vector<Json> wrong_values(const Json& value, std::size_t turn) {
  const Json most = std::numeric_limits<std::uint64_t>::max();
  const Json in_turn[] = {nullptr, Json::array(), Json::object(), "text", -1};
  std::vector<Json> values{in_turn[turn % std::size(in_turn)]};
  if (value.is_number()) values.insert(values.end(), {0, -1, 1e300, most});
  if (value.is_string()) values.insert(values.end(), {"text", "../~0/"});
  if (value.is_array()) values.push_back(Json::array());
  if (value.is_object()) values.push_back(Json::object());
  return values;
}

std::vector<std::string> damaged(const std::string& text) {
  std::vector<std::string> texts{"", "null", "[]", "3", "\"text\"", "{}", "{\"a\": 1e999}", "\xff"};
  for (std::size_t part = 1; part < 25; ++part)
    texts.push_back(text.substr(0, text.size() * part / 25));
  const Json document = Json::parse(text);
  std::vector<Json::json_pointer> places;
  add_places(document, Json::json_pointer(), places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Json::json_pointer& at = places[i];
    for (const Json& value : wrong_values(document[at], i)) {
      Json other = document;
      other[at] = value;
      texts.push_back(other.dump());
    }
    Json other = document;
    Json& outer = other[at.parent_pointer()];
    if (outer.is_object())
      outer.erase(at.back());
    else
      outer.erase(outer.begin());
    texts.push_back(other.dump());
  }
  return texts;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const fs::path sound = argv[1], directory = sound.parent_path() / "damaged";
  fs::remove_all(directory);
  fs::copy(sound, directory, fs::copy_options::recursive);
  const Readers study(directory, sound, argv[2]);
  int failures = 0;
  long tried = 0, rejected = 0;
  const auto read_by = [&](const auto& readers, const std::string& what) {
    ++tried;
    bool is_rejected = false;
    for (const auto& reader : readers) {
      const Outcome outcome = outcome_of(reader);
      if (!outcome.failed()) continue;
      is_rejected = true;
      const std::string& said = outcome.message;
      if (outcome.code == ExitCode::usage && said.find(directory.string()) != std::string::npos &&
          !said.starts_with("unexpected") && said.find('\n') == std::string::npos &&
          said.size() < 500)
        continue;
      std::printf("\"%s\" of %.300s\n", said.c_str(), what.c_str());
      ++failures;
    }
    rejected += is_rejected;
  };
  read_by(study.all(), "nothing damaged");
  failures += static_cast<int>(rejected);

  const auto readers = study.all();
  // Replaces a part of a file by damaged ones.
  const auto damage = [&](const fs::path& file, const std::string& before, const std::string& whole,
                          const std::string& after) {
    const long rejected_before = rejected;
    for (const std::string& text : damaged(whole)) {
      std::ofstream(file) << before << text << after;
      read_by(readers, text);
    }
    std::ofstream(file) << before << whole << after;
    std::printf("%s, %.60s: %ld rejected\n", file.c_str(), whole.c_str(),
                rejected - rejected_before);
    if (rejected == rejected_before) ++failures;
  };
  std::size_t documents = 0;
  for (const auto& entry : fs::recursive_directory_iterator(sound)) {
    const fs::path file = directory / fs::relative(entry.path(), sound);
    if (!entry.is_regular_file()) continue;
    const std::string whole = text_of(file);
    if (file.extension() == ".journal") {
      std::set<std::string> done;  // of several lines with the same keys, one
      for (std::size_t from = 0, end = 0; end = whole.find('\n', from), end != std::string::npos;
           from = end + 1) {
        const std::string line = whole.substr(from, end - from);
        const Json parsed = Json::parse(line);
        std::string keys;
        for (const auto& [key, value] : parsed.items()) keys += key + " ";
        if (!done.insert(keys).second) continue;
        ++documents;
        damage(file, whole.substr(0, from), line, whole.substr(end));
      }
    } else if (file.filename() == "study.json" || file.parent_path().filename() == "launches") {
      ++documents;
      damage(file, "", whole, "");
    } else {
      continue;
    }
    fs::remove(file);
    fs::create_directory(file);
    read_by(readers, "a directory");
    fs::remove(file);
    std::ofstream(file) << whole;
  }
  std::printf("%ld damages, %ld rejected, %d failures\n", tried, rejected, failures);
  return failures == 0 && documents >= 6 ? 0 : 1;
}
