// SPDX-License-Identifier: Apache-2.0
// Linked with fake_openblas.cpp. With an argument, the exit code is 0 if the check's advice
// contains it, on processors with faster kernels. `run` starts and ends a runtime. `no-memory`
// limits memory.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <tessera/process/blas_check.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/run_main.hpp>

namespace {

const bool can_be_faster =
    tessera::better_core(tessera::cpu_features(), {"0.3.21", "Prescott", true}).has_value();

/// Limits memory as `ulimit -v` does, to less than OpenBLAS asks for.
int limit_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{100} << 20);
  const struct rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  const tessera::Outcome outcome = tessera::outcome_of([] { tessera::limit_blas_threads(2); });
  if (outcome.failed()) tessera::log_error(outcome.message);
  return static_cast<int>(outcome.code);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string argument = argc > 1 ? argv[1] : "";
  if (argument == "no-memory") return limit_memory();
  if (argument == "run") {
    if (!can_be_faster) std::cout << "nothing to advise" << std::endl;
    return tessera::run_main(argc, argv, [](tessera::Runtime&) { return tessera::ExitCode::ok; });
  }
  tessera::BlasStatus status = tessera::check_blas();
  status.threads = tessera::limit_blas_threads(2);
  std::cout << describe(status) << '\n';
  const bool advises = status.advice.find(argument) != std::string::npos && !status.advice.empty();
  return advises == can_be_faster ? 0 : 1;
}
