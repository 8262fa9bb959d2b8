// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/base/launch.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/run_main.hpp>
#include <tessera/base/text.hpp>
#include <tessera/mesh/mesh.hpp>

#include "micro.hpp"

namespace {

using namespace tessera;
using namespace tessera::bench;

/// Ranks that keep their findings to themselves.
class Silence : public benchmark::BenchmarkReporter {
 public:
  Silence() : nowhere_(nullptr) {
    SetOutputStream(&nowhere_);
    SetErrorStream(&nowhere_);
  }
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}

 private:
  std::ostream nowhere_;
};

/// Arguments of this program, and those of Google Benchmark with the program's name before them.
struct Arguments {
  std::vector<std::string> own;
  std::vector<std::string> google;
};

Arguments sort_arguments(int argc, char** argv) {
  Arguments sorted;
  sorted.google.emplace_back(argv[0]);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    (argument.starts_with("--benchmark_") || argument == "--v" ? sorted.google : sorted.own)
        .push_back(argument);
  }
  return sorted;
}

/// Shuffled by each process for itself, benchmarks of different ranks would wait for each other for
/// ever.
void refuse_interleaving(const Arguments& arguments, int ranks) {
  const char* const variable = std::getenv("BENCHMARK_ENABLE_RANDOM_INTERLEAVING");
  bool asked = variable != nullptr && std::string(variable) != "0";
  for (const std::string& argument : arguments.google)
    asked |= argument.starts_with("--benchmark_enable_random_interleaving") &&
             !argument.ends_with("=false") && !argument.ends_with("=0");
  if (asked && ranks > 1)
    throw ConfigError("--benchmark_enable_random_interleaving", "true",
                      "is for one rank: each rank would take another order, and wait for ever");
}

/// Files are rank 0's to write.
void strip_output(Arguments& arguments) {
  std::erase_if(arguments.google, [](const std::string& argument) {
    return argument.starts_with("--benchmark_out");
  });
  arguments.google.emplace_back("--benchmark_out=");
}

/// Launchers give their processes a terminal that nobody looks at.
void choose_color(Arguments& arguments) {
  const bool is_chosen = std::any_of(
      arguments.google.begin(), arguments.google.end(),
      [](const std::string& argument) { return argument.starts_with("--benchmark_color"); });
  if (!is_chosen && detect_launch(std::getenv))
    arguments.google.emplace_back("--benchmark_color=false");
}

void initialize(Arguments& arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments.google) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.google.size());
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    throw Error(ExitCode::usage, std::string(argv[1]) + ": is no option of Google Benchmark");
}

void add_context(const Runtime& runtime, const MicroOptions& options, const Mesh& mesh) {
  const Provenance provenance = collect_provenance(runtime);
  const auto add = [](const char* name, const std::string& value) {
    benchmark::AddCustomContext(name, value);
  };
  add("tessera", provenance.version + " " + provenance.git_revision +
                     (provenance.git_dirty ? " modified" : ""));
  add("build", provenance.build_type + " " + provenance.compiler + " " + provenance.cxx_flags);
  add("kokkos", provenance.kokkos_version + " " + provenance.kokkos_backend);
  add("blas", provenance.blas);
  add("mpi", provenance.mpi_library);
  add("mesh", mesh.shape().to_string());
  add("rows_of_a_rank", std::to_string(options.batch));
}

/// None if only help was asked for.
std::optional<MicroOptions> parse(const Runtime& runtime, std::vector<std::string> arguments) {
  MicroOptions options;
  CLI::App app(
      "Speed of the parts of a step: products, kernels, collectives, redistributions\n"
      "Takes the options of Google Benchmark, too: --benchmark_filter=REGEX, "
      "--benchmark_out=FILE ...",
      "tessera-micro");
  app.add_option("--iterations", options.iterations, "Repetitions of each")
      ->check(CLI::Range(Size{1}, Size{1} << 20));
  app.add_option("--widths", options.widths, "Of the network whose shapes are measured")
      ->delimiter(',')
      ->check(CLI::Range(Size{1}, Size{1} << 20))
      ->expected(2, 1000);
  app.add_option("--batch", options.batch, "Rows on each rank")
      ->check(CLI::Range(Size{1}, Size{1} << 20));
  app.add_option("--mesh", options.mesh, "Axes whose collectives are measured");
  app.add_option("--bytes", options.bytes, "Sizes of messages")
      ->delimiter(',')
      ->check(CLI::Range(Size{4}, Size{1} << 30));
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    if (runtime.world_rank() == 0) std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::usage, one_line(error.what()));
  }
  return options;
}

ExitCode micro(Runtime& runtime, int argc, char** argv) {
  Arguments arguments = sort_arguments(argc, argv);
  const std::optional<MicroOptions> given = parse(runtime, arguments.own);
  if (!given) return ExitCode::ok;
  const MicroOptions& options = *given;
  refuse_interleaving(arguments, runtime.world_size());
  if (runtime.world_rank() != 0) strip_output(arguments);
  choose_color(arguments);
  initialize(arguments);

  const Communicator world = Communicator::world();
  const Mesh mesh(world, MeshShape::parse(options.mesh, world.size()));
  MicroContext context(options, mesh);
  add_compute_benchmarks(context);
  add_collective_benchmarks(context);
  add_mesh_benchmarks(context);
  add_context(runtime, options, mesh);

  Silence silence;
  const std::size_t ran = world.rank() == 0 ? benchmark::RunSpecifiedBenchmarks()
                                            : benchmark::RunSpecifiedBenchmarks(&silence);
  benchmark::ClearRegisteredBenchmarks();  // they hold memory of Kokkos
  if (ran == 0) throw Error(ExitCode::usage, "--benchmark_filter: no benchmark has such a name");
  if (context.errors() > 0)
    throw Error(ExitCode::wrong_result,
                std::to_string(context.errors()) + " benchmarks ended with an error");
  return ExitCode::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run_main(argc, argv,
                           [&](tessera::Runtime& runtime) { return micro(runtime, argc, argv); });
}
