// SPDX-License-Identifier: Apache-2.0
#include "run/jobs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;

/// Seconds of a launch without its cases: start of the ranks, GEMM peaks, measuring the machine.
constexpr double launch_seconds = 120;

/// The study with the context of its jobs.
struct JobContext {
  const JobsOptions& options;
  Study study;
  std::vector<Case> cases;
  Size ranks_per_node = 1;
  fs::path directory{};  ///< absolute
};

JobContext load_jobs(const JobsOptions& options) {
  JobContext context{options, load_study(options.source), {}};
  std::optional<Size>& per_node = context.study.base.training.distributed.num_processes_per_node;
  if (options.ranks_per_node) per_node = options.ranks_per_node;
  if (!per_node) throw Error(ExitCode::usage, "jobs needs --ranks-per-node");
  if (*per_node > most_ranks)
    throw ConfigError("--ranks-per-node", std::to_string(*per_node), "must be at most {}",
                      with_thousands(most_ranks));
  context.ranks_per_node = *per_node;
  context.cases = make_cases(context.study);
  return context;
}

/// Checks that the directory is new or empty, and that every scheduler accepts the characters of
/// its path.
fs::path check_directory(const std::string& given) {
  const fs::path path = absolute_path(given).lexically_normal();
  if (shell_word(path.string()) != path.string() ||
      path.string().find_first_of("@%") != std::string::npos)
    throw ConfigError("-o", given,
                      "must be a path without spaces or special characters, which some schedulers "
                      "reject");
  std::error_code error;
  if (fs::exists(path, error) && !(fs::is_directory(path, error) && fs::is_empty(path, error)) &&
      !error)
    throw ConfigError("-o", given, "must be a new or empty directory");
  if (error) throw ConfigError("-o", given, "cannot be read: " + error.message());
  return path;
}

/// Returns the time limit of a job, but at most --max-time: each case, and each reference, may take
/// limits.case_seconds. Throws ConfigError if a single case does not fit into that.
Size minutes_of(const Job& job, const JobContext& context) {
  const auto minutes = [&](const std::vector<const Case*>& cases) {
    std::set<std::string> runs;
    for (const Case* point : cases) {
      runs.insert(point->id);
      if (context.study.verify.enabled) runs.insert(reference_name(point->config));
    }
    const double seconds =
        launch_seconds + context.study.limits.case_seconds * static_cast<double>(runs.size());
    return static_cast<Size>(std::ceil(std::min(seconds / 60, 1e9)));
  };
  const Size all = context.study.measure.launches * minutes(job.cases);
  const Size most = context.options.max_minutes.value_or(all);
  if (const Size alone = minutes({job.cases.front()}); alone > most)
    throw ConfigError("--max-time", std::to_string(most),
                      "must be at least {}, the minutes that a case may take according to "
                      "limits.case_seconds",
                      alone);
  return std::min(all, most);
}

/// Returns the text for @run@: the cases, and the loop of launches until all cases have results.
std::string run_text(const Job& job, const JobContext& context) {
  const StudySource& source = context.options.source;
  const std::string results = (context.directory / "results").string();
  // Relative paths in the study's configuration are relative to the present working directory.
  std::string text =
      fmt::format("cd {} || exit\nexport OMP_NUM_THREADS={}\ncases=(\n",
                  shell_word(absolute_path(".").lexically_normal().string()), job.threads);
  for (const Case* point : job.cases) text += fmt::format("  {}\n", shell_word(point->id));
  text += fmt::format(
      ")\n\n# shellcheck source=/dev/null\nsource {}\nrun=(\"${{launcher[@]}}\" {} run "
      "{} -o {} --resume",
      (context.directory / "until_done.sh").string(),
      shell_word(fs::read_symlink("/proc/self/exe").string()),
      shell_word(absolute_path(source.file).string()), results);
  if (source.small) text += " --small";
  if (!source.ranks.empty()) text += fmt::format(" --ranks {}", fmt::join(source.ranks, ","));
  if (!source.strategies.empty()) text += " --strategy " + join(source.strategies, ",");
  for (const std::string& override : source.overrides) text += " --set " + shell_word(override);
  // A launch with few ranks must know the nodes of the larger ones.
  if (depends_on_nodes(context.study))
    text += fmt::format(" --set distributed.num_processes_per_node={}", context.ranks_per_node);
  text += " \"${cases[@]/#/--case=}\")\n";
  const std::string launch =
      fmt::format("until_done {} {} \"${{run[@]}}\"\n", results, context.options.give_up);
  // Each of these adds one launch to cases that have too few.
  for (Size i = 0; i < context.study.measure.launches; ++i) text += launch;
  text.pop_back();
  return text;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

const JobScheduler& scheduler_of(const JobsOptions& options) {
  return *std::find_if(
      std::begin(schedulers), std::end(schedulers),
      [&](const JobScheduler& scheduler) { return options.scheduler == scheduler.name; });
}

std::map<std::string, std::string> values_of(const Job& job, const JobContext& context,
                                             Size minutes) {
  const Size on_node = std::min(job.ranks, context.ranks_per_node);
  const Size nodes = (job.ranks + context.ranks_per_node - 1) / context.ranks_per_node;
  const JobScheduler& scheduler = scheduler_of(context.options);
  const auto asked = [&](const char* text) {
    return context.options.gpus ? fmt::format(fmt::runtime(text), on_node) : "";
  };
  return {{"study", word_of(context.study.name)},
          {"name", job.name},
          {"nodes", std::to_string(nodes)},
          {"ranks", std::to_string(job.ranks)},
          {"ranks_per_node", std::to_string(on_node)},
          {"threads", std::to_string(job.threads)},
          {"cpus_per_node", std::to_string(on_node * job.threads)},
          {"gpus", asked(scheduler.gpus)},
          {"launcher_gpus", asked(scheduler.launcher_gpus)},
          {"minutes", std::to_string(minutes)},
          {"time", fmt::format("{:02}:{:02}:00", minutes / 60, minutes % 60)},
          {"directory", context.directory.string()},
          {"run", run_text(job, context)}};
}

void write_script(const fs::path& path, const std::string& text) {
  write_text(path, text);
  const fs::perms all = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  std::error_code error;
  fs::permissions(path, all, fs::perm_options::add, error);
  if (error) throw Error(ExitCode::usage, "cannot write {}: {}", path.string(), error.message());
}

std::string submit_text(const fs::path& directory, const std::string& command,
                        const std::vector<std::string>& files) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# Submits all jobs. May be run again: a job whose cases have results ends at once.\n"
      "set -eu\ncd {}\nfor job in {}; do {} \"$job\"; done\n",
      directory.string(), join(files, " "), command);
}

}  // namespace

// PBS wants a letter first.
std::string word_of(std::string text) {
  for (char& c : text)
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '-') c = '_';
  return text.empty() || !is_letter(text.front()) ? "study_" + text : text;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string fill_template(std::string text, const std::string& name,
                          const std::map<std::string, std::string>& values) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  bool runs = false;
  if (!text.ends_with('\n')) text += '\n';
  for (std::size_t at = 0, line = 1; at < text.size();) {
    const std::size_t end = text.find_first_not_of(letters, at + 1);
    if (text[at] != '@' || end == at + 1 || end == std::string::npos || text[end] != '@') {
      line += text[at++] == '\n';
      continue;
    }
    const std::string key = text.substr(at + 1, end - at - 1);
    const auto value = values.find(key);
    if (value == values.end()) {
      std::vector<std::string> known;
      for (const auto& [one, unused] : values) known.push_back("@" + one + "@");
      throw ConfigError("--template", fmt::format("{}:{}", name, line),
                        "unknown placeholder @{}@; must be one of {}", key, join(known));
    }
    runs |= key == "run";
    text.replace(at, end + 1 - at, value->second);
    at += value->second.size();
  }
  if (!runs) throw ConfigError("--template", name, "must contain @run@, where the cases run");
  return text;
}

std::vector<Job> make_jobs(const std::vector<Case>& cases, const JobsOptions& options) {
  std::map<std::pair<Size, Size>, std::vector<const Case*>> groups;
  for (const Case& point : cases) {
    if (point.skip_reason) continue;
    const auto threads = point.config.training.distributed.threads;
    groups[{point.ranks(), threads.value_or(options.threads)}].push_back(&point);
  }
  std::vector<Job> jobs;
  for (const auto& [needs, members] : groups) {
    const auto [ranks, threads] = needs;
    if (options.per_case)
      for (const Case* point : members) jobs.push_back({point->id, ranks, threads, {point}});
    else
      jobs.push_back({threads == options.threads
                          ? fmt::format("ranks-{}", ranks)
                          : fmt::format("ranks-{}-threads-{}", ranks, threads),
                      ranks, threads, members});
  }
  return jobs;
}

ExitCode write_jobs(const JobsOptions& options) {
  JobContext context = load_jobs(options);
  context.directory = check_directory(options.directory);
  const bool has_own = !options.template_file.empty();
  const std::string name = has_own ? options.template_file : options.scheduler + ".template";
  if (const std::string problem = has_own ? why_unreadable(name) : ""; !problem.empty())
    throw ConfigError("--template", name, problem);
  const std::string text = has_own ? read_text(name) : std::string(job_file(name));
  const std::vector<Job> jobs = make_jobs(context.cases, options);
  if (jobs.empty())
    throw Error(ExitCode::usage, options.source.file + ": every case is skipped; no job is needed");

  // Checks everything before writing anything.
  std::vector<std::string> files, scripts;
  std::string table = fmt::format("{:>6} {:>7} {:>6} {:>8} {:>8}  {}\n", "cases", "ranks", "nodes",
                                  "threads", "minutes", "job");
  for (const Job& job : jobs) {
    if (depends_on_nodes(context.study) && job.ranks > context.ranks_per_node &&
        job.ranks % context.ranks_per_node != 0)
      throw ConfigError("--ranks-per-node", std::to_string(context.ranks_per_node),
                        "must evenly divide the {} ranks of {}, whose meshes depend on nodes",
                        job.ranks, job.name);
    const auto values = values_of(job, context, minutes_of(job, context));
    files.push_back(job.name + ".sh");
    scripts.push_back(fill_template(text, name, values));
    table += fmt::format("{:>6} {:>7} {:>6} {:>8} {:>8}  {}\n", job.cases.size(), job.ranks,
                         values.at("nodes"), job.threads, values.at("minutes"), files.back());
  }
  std::error_code error;
  fs::create_directories(context.directory, error);
  if (error) throw ConfigError("-o", options.directory, "cannot be created: " + error.message());
  for (std::size_t i = 0; i < files.size(); ++i)
    write_script(context.directory / files[i], scripts[i]);
  write_text(context.directory / "until_done.sh", std::string(job_file("until_done.sh")));
  const fs::path submit = context.directory / "submit.sh";
  write_script(submit, submit_text(context.directory, scheduler_of(options).submit, files));
  print_output(table + fmt::format("\nSubmit all of them with {}\n", submit.string()));
  return ExitCode::ok;
}

}  // namespace tessera::bench
