// SPDX-License-Identifier: Apache-2.0
#include "micro/micro_command_line.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex.h>

#include <CLI/CLI.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/launch.hpp>

namespace tessera::bench {
namespace {

/// A flag of Google Benchmark, without --benchmark_.
struct GoogleFlag {
  const char* name;
  const char* help;
  bool takes_value = true;
  CLI::Validator check{};
  std::string value{};  ///< "" unless it is given

  std::string option() const { return std::string("--benchmark_") + name; }
  std::string variable() const {
    std::string variable = option().substr(2);
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return variable;
  }
  /// What values are checked with, of flags without one as well.
  CLI::Validator validator() const {
    return takes_value ? check : CLI::Validator(CLI::IsMember({"true", "false"}));
  }
};

std::vector<GoogleFlag> google_flags() {
  const CLI::IsMember formats({"console", "json", "csv"});
  return {
      {"list_tests", "List the benchmarks without running them", false},
      {"filter", "Run the benchmarks that match; with a leading -, those that do not"},
      {"format", "Output format on the terminal", true, formats},
      {"out", "Also write the results to this file"},
      {"out_format", "Output format in the file", true, formats},
      {"color", "Colored output; by default not under an MPI launcher", true,
       CLI::IsMember({"auto", "true", "false", "yes", "no", "1", "0"})},
      {"time_unit", "Default time unit", true, CLI::IsMember({"ns", "us", "ms", "s"})},
      {"repetitions", "Number of times to run each benchmark", true,
       CLI::Range(Size{1}, Size{1} << 20)},
      {"report_aggregates_only", "Report only mean, median and deviation of the repetitions",
       false},
      {"display_aggregates_only", "The same, but only on the terminal", false},
      {"counters_tabular", "Show counters in columns", false},
      {"enable_random_interleaving", "Run repetitions in random order (one rank only)", false},
      {"min_time", "Not supported: use --iterations"},
      {"min_warmup_time", "Not supported: use --iterations"},
  };
}

void add_google_flag(CLI::App& app, GoogleFlag& flag) {
  CLI::Option* const option = flag.takes_value
                                  ? app.add_option(flag.option(), flag.value, flag.help)
                                  : app.add_flag(flag.option(), flag.value, flag.help);
  option->envname(flag.variable())->group("Google Benchmark")->check(flag.validator());
}

/// CLI11 2.7 passes over a variable whose value the option does not allow.
void check_variable(const GoogleFlag& flag) {
  const char* const value = std::getenv(flag.variable().c_str());
  if (value == nullptr || *value == '\0' || !flag.value.empty()) return;
  if (const std::string problem = flag.validator()(value); !problem.empty())
    throw ConfigError(flag.variable(), value, problem);
}

void add_own_flags(CLI::App& app, MicroOptions& options, int ranks) {
  const CLI::Range count(Size{1}, Size{1} << 20);
  app.add_option("--iterations", options.iterations, "Iterations of each benchmark")->check(count);
  app.add_option("--widths", options.widths,
                 "Layer widths of the network whose shapes are measured")
      ->delimiter(',')
      ->check(count)
      ->expected(2, 1000);
  app.add_option("--batch", options.batch, "Rows per rank")->check(count);
  app.add_option("--mesh", options.mesh, "Mesh whose collectives are measured");
  app.add_option("--bytes", options.bytes, "Message sizes in bytes")
      ->delimiter(',')
      ->check(CLI::Range(Size{4}, Size{1} << 30));
  app.add_option("--directory", options.directory,
                 "Also time checkpoints of that network, written to this directory");
  app.add_option("--inject-wrong", options.wrong_rank,
                 "For testing: make this rank report one wrong element in every checked result")
      ->type_name("RANK")
      ->check(CLI::Range(0, ranks - 1));
}

void check_expression(const std::string& filter) {
  // Not std::regex, in which g++ 12 warns under sanitizers.
  regex_t compiled;
  const char* const expression = filter.c_str() + (filter.starts_with('-') ? 1 : 0);
  if (regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB) != 0)
    throw ConfigError("--benchmark_filter", filter, "is not a regular expression");
  regfree(&compiled);
}

/// Refuses what would make ranks do different things, or end the process later on.
void check_flag(const std::string& name, const std::string& value, int ranks) {
  if (name == "filter") check_expression(value);
  if (name == "enable_random_interleaving" && value == "true" && ranks > 1)
    throw ConfigError(
        "--benchmark_enable_random_interleaving", "true",
        "works on one rank only, because each rank would use a different order and deadlock");
  if (name == "min_time" || name == "min_warmup_time")
    throw ConfigError("--benchmark_" + name, value,
                      "is not supported: each rank would choose its own number of repetitions and "
                      "deadlock; use --iterations N");
}

}  // namespace

MicroCommand parse_micro_command(const std::vector<std::string>& arguments, int rank, int ranks) {
  CLI::App app("Time the parts of a step: matrix products, kernels, collectives, redistributions",
               "tessera-micro");
  MicroCommand command;
  std::vector<GoogleFlag> flags = google_flags();
  add_own_flags(app, command.options, ranks);
  for (GoogleFlag& flag : flags) add_google_flag(app, flag);
  try {
    app.parse(reversed_own_arguments(arguments));
  } catch (const CLI::CallForHelp&) {
    command.text = app.help();
    return command;
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::usage, excerpt(one_line(error.what()), 300));
  }
  // Launchers give their processes a terminal that nobody looks at.
  if (detect_launch(std::getenv)) command.google = {"--benchmark_color=false"};
  for (const GoogleFlag& flag : flags) {
    check_variable(flag);
    if (flag.value.empty()) continue;
    check_flag(flag.name, flag.value, ranks);
    if (flag.name == std::string("out")) command.file = flag.value;
    command.google.push_back(flag.option() + "=" + flag.value);
  }
  if (rank > 0) command.google.push_back("--benchmark_out=");
  return command;
}

}  // namespace tessera::bench
