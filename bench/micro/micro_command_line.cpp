// SPDX-License-Identifier: Apache-2.0
#include "micro/micro_command_line.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex.h>
#include <sstream>

#include <CLI/CLI.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/launch.hpp>
#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

/// Google Benchmark's flags, as they are given and with their defaults.
struct GoogleFlags {
  std::string filter = ".", format = "console", out, out_format = "json", color, time_unit,
              min_time, min_warmup_time;
  Size repetitions = 1;
  bool list_tests = false, report_aggregates_only = false, display_aggregates_only = false,
       counters_tabular = false, random_interleaving = false;
};

std::string on_off(bool value) { return value ? "true" : "false"; }

CLI::Option* from_environment(CLI::Option* option) {
  std::string name = option->get_name().substr(2);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return option->envname(name)->group("Google Benchmark");
}

void add_google_flags(CLI::App& app, GoogleFlags& flags) {
  const auto text = [&](const char* name, std::string& value, const char* what) {
    return from_environment(app.add_option(name, value, what));
  };
  const auto flag = [&](const char* name, bool& value, const char* what) {
    from_environment(app.add_flag(name, value, what));
  };
  const CLI::IsMember formats({"console", "json", "csv"});
  flag("--benchmark_list_tests", flags.list_tests, "List the benchmarks without running them");
  text("--benchmark_filter", flags.filter,
       "Run the benchmarks that match; with a leading -, those that do not")
      ->type_name("REGEX");
  text("--benchmark_format", flags.format, "Output format on the terminal")->check(formats);
  text("--benchmark_out", flags.out, "Also write the results to this file")->type_name("FILE");
  text("--benchmark_out_format", flags.out_format, "Output format in the file")->check(formats);
  text("--benchmark_color", flags.color, "Colored output; by default not under an MPI launcher")
      ->check(CLI::IsMember({"auto", "true", "false", "yes", "no", "1", "0"}));
  text("--benchmark_time_unit", flags.time_unit, "Default time unit")
      ->check(CLI::IsMember({"ns", "us", "ms", "s"}));
  from_environment(app.add_option("--benchmark_repetitions", flags.repetitions,
                                  "Number of times to run each benchmark"))
      ->check(CLI::Range(Size{1}, Size{1} << 20));
  flag("--benchmark_report_aggregates_only", flags.report_aggregates_only,
       "Report only mean, median and deviation of the repetitions");
  flag("--benchmark_display_aggregates_only", flags.display_aggregates_only,
       "The same, but only on the terminal");
  flag("--benchmark_counters_tabular", flags.counters_tabular, "Show counters in columns");
  flag("--benchmark_enable_random_interleaving", flags.random_interleaving,
       "Run repetitions in random order (one rank only)");
  text("--benchmark_min_time", flags.min_time, "Not supported: use --iterations");
  text("--benchmark_min_warmup_time", flags.min_warmup_time, "Not supported: use --iterations");
}

void add_own_flags(CLI::App& app, MicroOptions& options, int ranks) {
  app.add_option("--iterations", options.iterations, "Iterations of each benchmark")
      ->check(CLI::Range(Size{1}, Size{1} << 20));
  app.add_option("--widths", options.widths,
                 "Layer widths of the network whose shapes are measured")
      ->delimiter(',')
      ->check(CLI::Range(Size{1}, Size{1} << 20))
      ->expected(2, 1000);
  app.add_option("--batch", options.batch, "Rows per rank")
      ->check(CLI::Range(Size{1}, Size{1} << 20));
  app.add_option("--mesh", options.mesh, "Mesh whose collectives are measured");
  app.add_option("--bytes", options.bytes, "Message sizes in bytes")
      ->delimiter(',')
      ->check(CLI::Range(Size{4}, Size{1} << 30));
  app.add_option("--inject-wrong", options.wrong_rank,
                 "For testing: make this rank report one wrong element in every checked result")
      ->type_name("RANK")
      ->check(CLI::Range(0, ranks - 1));
}

void refuse_differences(const GoogleFlags& flags, int ranks) {
  if (flags.random_interleaving && ranks > 1)
    throw ConfigError("--benchmark_enable_random_interleaving", "true",
                      "works on one rank only: each rank would use a different order and deadlock");
  const std::string why =
      "is not supported: each rank would choose its own number of repetitions and deadlock; use "
      "--iterations N";
  if (!flags.min_time.empty()) throw ConfigError("--benchmark_min_time", flags.min_time, why);
  if (!flags.min_warmup_time.empty())
    throw ConfigError("--benchmark_min_warmup_time", flags.min_warmup_time, why);
}

void check_expression(const std::string& filter) {
  // Not std::regex, in which g++ 12 warns under sanitizers.
  regex_t compiled;
  const char* const expression = filter.c_str() + (filter.starts_with('-') ? 1 : 0);
  if (regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB) != 0)
    throw ConfigError("--benchmark_filter", filter, "is not a regular expression");
  regfree(&compiled);
}

/// Launchers give their processes a terminal that nobody looks at.
std::string color_of(const GoogleFlags& flags) {
  if (!flags.color.empty()) return flags.color;
  return detect_launch(std::getenv) ? "false" : "auto";
}

std::vector<std::string> for_rank(const GoogleFlags& flags, int rank) {
  return {"--benchmark_list_tests=" + on_off(flags.list_tests),
          "--benchmark_filter=" + flags.filter,
          "--benchmark_format=" + flags.format,
          "--benchmark_out=" + (rank == 0 ? flags.out : ""),
          "--benchmark_out_format=" + flags.out_format,
          "--benchmark_color=" + color_of(flags),
          "--benchmark_time_unit=" + flags.time_unit,
          "--benchmark_repetitions=" + std::to_string(flags.repetitions),
          "--benchmark_report_aggregates_only=" + on_off(flags.report_aggregates_only),
          "--benchmark_display_aggregates_only=" + on_off(flags.display_aggregates_only),
          "--benchmark_counters_tabular=" + on_off(flags.counters_tabular),
          "--benchmark_enable_random_interleaving=" + on_off(flags.random_interleaving)};
}

}  // namespace

MicroCommand parse_micro_command(const std::vector<std::string>& arguments, int rank, int ranks) {
  CLI::App app("Time the parts of a step: matrix products, kernels, collectives, redistributions",
               "tessera-micro");
  MicroCommand command;
  GoogleFlags flags;
  add_own_flags(app, command.options, ranks);
  add_google_flags(app, flags);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    command.text = app.help();
    return command;
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::usage, one_line(error.what()));
  }
  refuse_differences(flags, ranks);
  check_expression(flags.filter);
  command.file = flags.out;
  command.google = for_rank(flags, rank);
  return command;
}

}  // namespace tessera::bench
