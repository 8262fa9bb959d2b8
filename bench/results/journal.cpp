// SPDX-License-Identifier: Apache-2.0
#include "results/journal.hpp"

#include <algorithm>
#include <fcntl.h>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* extension = ".journal";
constexpr Size most_bytes = Size{1} << 30;

std::string text_of(const Json& line) {
  Json known = Json::object();
  for (const auto& [key, value] : line.items())
    if (!value.is_null()) known[key] = value;
  return known.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

fs::path create(const fs::path& results, const std::string& name, const Chosen& chosen) {
  const fs::path file = results / "launches" / (name + extension);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) throw ConfigError("-o", results.string(), "cannot be created: " + error.message());
  if (fs::exists(file, error))
    throw Error(ExitCode::usage, "{}: another launch of this name has begun", file.string());
  write_durably(file, text_of(chosen));
  return file;
}

/// Returns the files of the launches with this extension, sorted.
std::vector<fs::path> files_of(const fs::path& results, const char* wanted) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(results / "launches", error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == wanted) files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns the launch of a journal: a rank that ended the launch has a journal of its own,
/// "<launch>@<rank>".
std::string launch_of(const fs::path& journal) {
  const std::string name = journal.stem().string();
  return name.substr(0, name.find('@'));
}

/// Checks what readers of a case's result use.
void check_result(const StoredDocument& line, const End& end) {
  const StoredDocument stored = line["result"];
  const CaseResult& result = *end.result;
  if (result.id != end.what) stored["id"].fail("must be " + end.what);
  if (const StoredDocument nodes = stored["case"]["nodes"]["count"]; !nodes.is_unknown())
    nodes.integer(1, most_ranks);
  for (const StoredDocument& section : stored["config"].parts(false)) section.parts(false);
  if (result.status == "failed" || result.status == "timeout" || result.status == "oom")
    stored["exit_code"].integer(1, 255);
  if (result.is_measured() && !end.block) line["block"].fail("must be an object");
  if (!result.is_measured()) return;
  stored["compute"]["flops_per_step"].number();
  if (!result.simulated.empty()) stored["samples_per_second"].number();
  if (!result.simulated.empty()) stored["step_seconds"]["median"].number();
}

/// Returns the launches whose lines other launches replace.
std::set<std::string> replaced_launches(const std::map<std::string, LaunchLines>& launches) {
  std::set<std::string> replaced;
  for (const auto& [launch, lines] : launches)
    for (const Begin& begin : lines.begins)
      replaced.insert(begin.instead_of.begin(), begin.instead_of.end());
  return replaced;
}

End read_end(const StoredDocument& line) {
  End end = line.as<End>();
  if (end.result) check_result(line, end);
  if (end.block && end.steps.empty()) line["steps"].fail("must be a list of numbers");
  for (const StoredDocument& step : line["steps"].parts(true)) step.number(0);
  return end;
}

}  // namespace

Journal::Journal(const fs::path& results, const std::string& name, const Chosen& chosen)
    : file_(create(results, name, chosen), O_WRONLY),
      size_(static_cast<Size>(text_of(chosen).size())) {}

void Journal::append(const Json& line) {
  const std::string text = text_of(line);
  const auto size = static_cast<Size>(text.size());
  file_.write(size_, text.data(), size);
  file_.sync();
  size_ += size;
}

Size LaunchLines::crashes() const {
  return std::count_if(begins.begin(), begins.end(),
                       [&](const Begin& begin) { return ends.count(begin.round) == 0; });
}

void Journals::add(const std::string& launch, const std::string& text, const std::string& file) {
  bytes += std::ssize(text);
  Chosen& chosen = launches[launch];
  std::size_t from = 0;
  for (Size number = 1; true; ++number) {
    const std::size_t end = text.find('\n', from);
    if (end == std::string::npos) return;
    const StoredDocument line =
        StoredDocument::parse(text.substr(from, end - from), fmt::format("{}:{}", file, number));
    from = end + 1;
    if (!line["begin"].is_missing()) {
      const auto begin = line.as<Begin>();
      lines[begin.what][launch].begins.push_back(begin);
    } else if (!line["end"].is_missing()) {
      End one = read_end(line);
      const Size round = one.round;
      std::map<Size, End>& ends = lines[one.what][launch].ends;
      ends.try_emplace(round, std::move(one));
    } else {
      const auto found = line.as<Chosen>();
      if (found.give_up) chosen.give_up = found.give_up;  // a rank that ends the launch has none
      for (const std::string& id : found.runs) {
        chosen.runs.push_back(id);
        if (!found.give_up) lines[id][launch].counts_anew = true;
      }
    }
  }
}

Journals read_journals(const fs::path& results) {
  Journals journals;
  for (const fs::path& file : files_of(results, extension))
    journals.add(launch_of(file), read_text(file, most_bytes), file.string());
  for (const fs::path& file : files_of(results, ".json"))
    if (journals.launches.count(file.stem().string()) == 0)
      throw Error(ExitCode::usage,
                  "{}: {} has no journal, as of tessera-bench 0.2: compare and resume such results "
                  "with that release",
                  results.string(), file.filename().string());
  return journals;
}

Size journal_bytes(const fs::path& results) {
  Size bytes = 0;
  std::error_code unused;
  for (const fs::path& file : files_of(results, extension))
    bytes += static_cast<Size>(fs::file_size(file, unused));
  return bytes;
}

CaseHistory history_of(const Journals& journals, const std::string& id) {
  CaseHistory history;
  const auto found = journals.lines.find(id);
  if (found == journals.lines.end()) return history;
  const std::set<std::string> replaced = replaced_launches(found->second);
  std::vector<Round> rounds;
  Size crashes = 0, measured = 0;
  for (const auto& [launch, lines] : found->second) {
    if (replaced.count(launch) > 0) continue;
    history.launches.push_back(launch);
    if (lines.counts_anew) crashes = 0;
    crashes += lines.crashes();
    for (const auto& [round, end] : lines.ends) {
      if (end.give_up && crashes < *end.give_up) continue;
      if (end.result) history.result = *end.result;
      if (history.result.simulated.empty()) history.result.wall_seconds = end.seconds;
      history.result.finished = end.time;
      if (!end.block) continue;
      rounds.push_back(*end.block);
      history.steps.push_back(end.steps);
      if (end.last && history.result.is_measured()) ++measured;
    }
  }
  history.result.rounds = std::move(rounds);
  history.result.crashes = crashes;
  history.result.launches = measured;
  return history;
}

std::optional<Reference> reference_of(const Journals& journals, const std::string& name) {
  std::optional<Reference> best;
  const auto found = journals.lines.find(name);
  if (found == journals.lines.end()) return best;
  const std::set<std::string> replaced = replaced_launches(found->second);
  for (const auto& [launch, lines] : found->second)
    for (const auto& [round, end] : lines.ends)
      if (end.reference && replaced.count(launch) == 0 &&
          (!best || !best->has_steps(end.reference->asked_steps)))
        best = end.reference;
  return best;
}

Size crashes_of_reference(const Journals& journals, const std::string& name,
                          const std::vector<const Case*>& cases) {
  Size crashes = 0;
  const auto found = journals.lines.find(name);
  if (found == journals.lines.end()) return crashes;
  for (const auto& [launch, lines] : found->second) {
    const Chosen& chosen = journals.launches.at(launch);
    const bool has_case = std::any_of(cases.begin(), cases.end(), [&](const Case* point) {
      return std::count(chosen.runs.begin(), chosen.runs.end(), point->id) > 0;
    });
    if (!has_case) continue;
    if (!chosen.give_up) crashes = 0;
    crashes += lines.crashes();
  }
  return crashes;
}

}  // namespace tessera::bench
