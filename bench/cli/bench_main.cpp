// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/standard_streams.hpp>

#include "cli/bench_command_line.hpp"
#include "results/summary.hpp"
#include "run/console.hpp"

namespace tessera::bench {
namespace {

Task task_for(const StudySource& source) {
  return SingleTask([source](Size) {
    const Study study = load_study(source);
    print_output(case_list(study, make_cases(study)));
    return ExitCode::ok;
  });
}

Task task_for(const SimulateOptions& options) {
  return SingleTask([options](Size) { return simulate_study(options); });
}

Task task_for(const CalibrateOptions& options) {
  return ParallelTask([options](Runtime&) { return calibrate_machine(options); });
}

Task task_for(const JobsOptions& options) {
  return SingleTask([options](Size) { return write_jobs(options); });
}

Task task_for(const CompareOptions& options) {
  return SingleTask([options](Size) {
    if (!options.json.empty()) {
      std::vector<FileUse> uses{{"--json", options.json, true}};
      for (const auto& [key, path] :
           {std::pair("BEFORE", options.before), std::pair("AFTER", options.after)})
        for (FileUse& use : ResultsDirectory(path).uses(key, false)) uses.push_back(std::move(use));
      check_distinct(uses);
      check_writable("--json", options.json);
    }
    const Comparison comparison = compare_results(options.before, options.after);
    if (!options.json.empty()) write_json(options.json, comparison);
    print_output(comparison_text(comparison));
    if (comparison.regressed) return ExitCode::wrong_result;
    if (comparison.compared == 0) throw Error(ExitCode::usage, "no case can be compared");
    return ExitCode::ok;
  });
}

Task task_for(const RunOptions& options) {
  if (options.dry_run)
    return SingleTask([options](Size ranks) { return show_selection(options, ranks); });
  return ParallelTask([options](Runtime& runtime) {
    // A reader that leaves must not end a study whose results also go to files.
    std::signal(SIGPIPE, SIG_IGN);
    return run_study(runtime, options);
  });
}

Task task_of(const std::vector<std::string>& arguments) {
  return std::visit([](const auto& command) { return task_for(command); },
                    parse_command_line(arguments));
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  return tessera::run_program(argc, argv, tessera::bench::task_of);
}
