// SPDX-License-Identifier: Apache-2.0
#include "run/calibrate_command.hpp"

#include <filesystem>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>

#include "measure/gemm_peak.hpp"
#include "measure/measure_machine.hpp"

namespace tessera::bench {
namespace {

void check_launch(const Topology& topology) {
  if (topology.ranks() < 2)
    throw Error(ExitCode::usage, "calibrate needs 2 ranks or more, to measure links between them");
  if (!topology.per_node())
    throw Error(ExitCode::usage,
                "calibrate needs the same number of ranks on every node; the launch has nodes: {}",
                nodes_text(topology));
}

ProductRates measure_rates(const Communicator& ranks, Size gemm_size) {
  ProductRates rates;
  for (const DType type : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    rates[std::string(name_of(type))] = gemm_peak(ranks, {type}, gemm_size, 5);
  if (has_native_tf32())
    rates["tf32"] = gemm_peak(ranks, {DType::float32, MatmulPrecision::tf32}, gemm_size, 5);
  return rates;
}

}  // namespace

ExitCode calibrate_machine(const CalibrateOptions& options) {
  const Communicator world = Communicator::world();
  const std::filesystem::path file = options.output;
  collectively(world, [&] {
    if (world.rank() != 0) return;
    check_writable("-o", file);
    std::error_code unused;
    if (std::filesystem::exists(file, unused))
      throw ConfigError("-o", file.string(), "exists; choose another file");
  });
  const std::vector<Size> nodes = node_of_ranks(world);
  check_launch(Topology(nodes));
  const BackendFacts facts = backend_facts();
  Machine machine = measure_machine(world, nodes, facts, options.gemm_size,
                                    measure_rates(world, options.gemm_size));
  machine.name = file.stem().string();
  collectively(world, [&] {
    if (world.rank() != 0) return;
    const std::string text = fmt::format(
        "# Measured at {} on nodes: {}; {} of a rank.\n# For more nodes of the same kind, raise "
        "`ranks` of the last "
        "level.\n{}",
        utc_time(), nodes_text(Topology(nodes)), counted(Kokkos::num_threads(), "thread"),
        machine_as_toml(machine));
    write_text(file, text);
    print_output(text);
  });
  return ExitCode::ok;
}

}  // namespace tessera::bench
