// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <benchmark/benchmark.h>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/run_main.hpp>

#include "micro/line_filter.hpp"
#include "micro/micro_command_line.hpp"

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

void initialize(std::vector<std::string> arguments) {
  static char program[] = "tessera-micro";  // Google Benchmark keeps the pointer
  std::vector<char*> argv{program};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size()) + 1;
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    throw Error(ExitCode::usage, std::string(argv[1]) + ": is not an option of Google Benchmark");
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

/// Google Benchmark warns where it was compiled without NDEBUG, as Debian's is. That slows down its
/// own loop, which no time here is taken around.
std::size_t run_and_report() {
  LineFilter filter(std::cerr, "***WARNING*** Library was built as DEBUG");
  std::ostream errors(&filter);
  const std::unique_ptr<benchmark::BenchmarkReporter> reporter(
      benchmark::CreateDefaultDisplayReporter());
  reporter->SetErrorStream(&errors);
  return benchmark::RunSpecifiedBenchmarks(reporter.get());
}

ExitCode micro(Runtime& runtime, const std::vector<std::string>& arguments) {
  const MicroCommand command =
      parse_micro_command(arguments, runtime.world_rank(), runtime.world_size());
  const MicroOptions& options = command.options;
  const Communicator world = Communicator::world();
  const Mesh mesh(world, MeshShape::parse(options.mesh, Topology(node_of_ranks(world))));
  // Google Benchmark ends the process where it cannot write, behind MPI's back.
  collectively(world, [&] {
    if (world.rank() == 0 && !command.file.empty()) check_writable("--benchmark_out", command.file);
  });
  initialize(command.google);
  MicroContext context(options, mesh);
  add_compute_benchmarks(context);
  add_layer_benchmarks(context);
  add_collective_benchmarks(context);
  add_mesh_benchmarks(context);
  add_communicator_benchmarks(context);
  add_checkpoint_benchmarks(context);
  add_context(runtime, options, mesh);

  Silence silence;
  const std::size_t ran =
      world.rank() == 0 ? run_and_report() : benchmark::RunSpecifiedBenchmarks(&silence);
  if (ran == 0) throw Error(ExitCode::usage, "--benchmark_filter: no benchmark matches");
  if (context.errors() > 0)
    throw Error(ExitCode::wrong_result,
                std::to_string(context.errors()) + " benchmarks ended with an error");
  return ExitCode::ok;
}

// Help needs neither MPI nor a device.
Task task_of(const std::vector<std::string>& arguments) {
  for (const char* const flag : {"-h", "--help"})
    if (std::find(arguments.begin(), arguments.end(), flag) != arguments.end())
      return task_for(ShowText{parse_micro_command({flag}, 0, 1).text});
  return ParallelTask([arguments](Runtime& runtime) { return micro(runtime, arguments); });
}

}  // namespace

int main(int argc, char** argv) { return tessera::run_program(argc, argv, task_of); }
