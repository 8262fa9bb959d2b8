// SPDX-License-Identifier: Apache-2.0
#include "run/calibrate_command.hpp"

#include <filesystem>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>

#include "measure/measure_machine.hpp"

namespace tessera::bench {

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
  Machine machine = measure_machine(world, nodes, options.gemm_size);
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
