// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cctype>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/launch.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/tensor/mesh.hpp>

#include "cli/whole_number.hpp"
#include "micro/micro.hpp"

namespace {

using namespace tessera;
using namespace tessera::bench;

void add_flags(CLI::App& app, MicroOptions& options) {
  const CLI::Validator count = at_least_one(Size{1} << 20);
  app.add_option("--iterations", options.iterations, "Iterations of each benchmark (20)")
      ->check(count);
  app.add_option(
         "--widths", options.widths,
         "Layer widths of the network whose matrix shapes are measured (1024,4096,4096,1024)")
      ->delimiter(',')
      ->check(count)
      ->expected(2, 1000);
  app.add_option("--batch", options.batch, "Rows per rank (1024)")->check(count);
  app.add_option("--mesh", options.mesh, "Mesh whose collectives are measured (data=-1)");
  app.add_option(
         "--bytes", options.bytes,
         "Message sizes in bytes, each from 4 bytes to 1 GiB (1 KiB to 64 MiB, in steps of 4)")
      ->delimiter(',')
      ->check(CLI::Range(Size{4}, Size{1} << 30).description(""));
  app.add_option("--inject-wrong", options.wrong_rank,
                 "For testing: make this rank report one wrong element in every checked result")
      ->type_name("RANK");
  app.allow_extras();
  app.footer("\nAll other options are those of Google Benchmark:");
}

/// Returns the value of a flag of Google Benchmark, which also reads it from a variable.
std::string google_flag(const std::vector<std::string>& flags, std::string name) {
  const std::string given = "--" + name, with_value = given + "=";
  std::string value;
  for (const std::string& flag : flags) {
    if (flag == given) value = "true";
    if (flag.starts_with(with_value)) value = flag.substr(with_value.size());
  }
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (const char* const variable = std::getenv(name.c_str()); variable != nullptr && value.empty())
    value = variable;
  return value;
}

/// Passes flags to Google Benchmark, which ends the process after a bad value. MPI has not started
/// yet, so this harms no other rank.
void initialize(std::vector<std::string> flags) {
  for (const char* const name :
       {"benchmark_min_time", "benchmark_min_warmup_time", "benchmark_enable_random_interleaving"})
    if (const std::string value = google_flag(flags, name); !value.empty() && value != "false")
      throw ConfigError(std::string("--") + name, value,
                        "is not supported: ranks would run different benchmarks and wait for each "
                        "other forever; set --iterations instead");
  // Launchers give their processes a terminal that nobody looks at.
  if (detect_launch(std::getenv)) flags.insert(flags.begin(), "--benchmark_color=false");
  static char program[] = "tessera-micro";  // Google Benchmark keeps the pointer
  std::vector<char*> argv{program};
  for (std::string& flag : flags) argv.push_back(flag.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    throw Error(ExitCode::usage, "{}: is no option of tessera-micro or Google Benchmark", argv[1]);
}

void add_context(const Runtime& runtime, const MicroOptions& options, const Mesh& mesh) {
  const nlohmann::json p = collect_provenance(runtime);
  const auto add = [](const char* name, const std::string& value) {
    benchmark::AddCustomContext(name, value);
  };
  const auto words = [&](std::initializer_list<const char*> paths) {
    std::vector<std::string> values;
    for (const char* path : paths) values.push_back(p.at(nlohmann::json::json_pointer(path)));
    return join(values, " ");
  };
  add("tessera", words({"/version", "/git_revision"}) + (p.at("git_dirty") ? " modified" : ""));
  add("build", words({"/build_type", "/compiler", "/cxx_flags"}));
  add("kokkos", words({"/kokkos/version", "/kokkos/backend"}));
  add("blas", p.at("blas"));
  add("mpi", p.at("mpi").at("library"));
  add("mesh", mesh.shape().to_string());
  add("rows_of_a_rank", std::to_string(options.batch));
}

/// Runs the benchmarks on all ranks; rank 0 reports. Returns how many ran.
std::size_t run_benchmarks(int rank) {
  if (rank == 0) return benchmark::RunSpecifiedBenchmarks();
  initialize({"--benchmark_out="});
  std::ostream nowhere(nullptr);
  benchmark::ConsoleReporter silent;
  silent.SetOutputStream(&nowhere);
  silent.SetErrorStream(&nowhere);
  return benchmark::RunSpecifiedBenchmarks(&silent);
}

ExitCode micro(Runtime& runtime, const MicroOptions& options, const std::string& file) {
  const Communicator world = Communicator::world();
  if (options.wrong_rank >= world.size())
    throw ConfigError("--inject-wrong", std::to_string(options.wrong_rank),
                      "must be less than the number of ranks");
  const Mesh mesh(world, MeshShape::parse(options.mesh, Topology(node_of_ranks(world))));
  // Google Benchmark would end the process of rank 0 if it cannot write, and wait for a FIFO.
  collectively(world, [&] {
    if (world.rank() == 0 && !file.empty()) check_writable("--benchmark_out", file);
  });
  MicroContext context(options, mesh);
  add_compute_benchmarks(context);
  add_layer_benchmarks(context);
  add_collective_benchmarks(context);
  add_context(runtime, options, mesh);
  if (run_benchmarks(world.rank()) == 0)
    throw Error(ExitCode::usage, "--benchmark_filter: no benchmark matches");
  if (context.errors() > 0)
    throw Error(ExitCode::wrong_result, "{} benchmarks ended with an error", context.errors());
  return ExitCode::ok;
}

Task task_of(const std::vector<std::string>& arguments) {
  CLI::App app("Time the parts of a step: matrix products, kernels, layers, collectives",
               "tessera-micro");
  MicroOptions options;
  add_flags(app, options);
  try {
    app.parse(reversed_own_arguments(arguments));
  } catch (const CLI::CallForHelp&) {
    return SingleTask([help = app.help()](Size) {
      print_output(help);
      benchmark::PrintDefaultHelp();
      return ExitCode::ok;
    });
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::usage, excerpt(one_line(error.what()), 300));
  }
  const std::vector<std::string> google = app.remaining();
  initialize(google);
  return ParallelTask([options, file = google_flag(google, "benchmark_out")](Runtime& runtime) {
    return micro(runtime, options, file);
  });
}

}  // namespace

int main(int argc, char** argv) { return tessera::run_program(argc, argv, task_of); }
