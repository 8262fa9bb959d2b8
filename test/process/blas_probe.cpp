// SPDX-License-Identifier: Apache-2.0
// Linked with fake_openblas.cpp: starts a runtime and prints its BLAS. `no-memory` limits memory.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include <tessera/base/openblas_core.hpp>
#include <tessera/process/blas_check.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/run_main.hpp>

using namespace tessera;

namespace {

/// Limits memory as `ulimit -v` does, to less than OpenBLAS asks for.
int limit_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{100} << 20);
  const struct rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  const Outcome outcome = outcome_of([] { start_blas(2); });
  if (outcome.failed()) log_error(outcome.message);
  return static_cast<int>(outcome.code);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "no-memory") return limit_memory();
  if (faster_core(cpu_features(), "Prescott").empty())
    std::cout << "nothing to advise" << std::endl;
  return run_main(argc, argv, [](Runtime& runtime) {
    std::cout << runtime.blas().text << std::endl;
    return ExitCode::ok;
  });
}
