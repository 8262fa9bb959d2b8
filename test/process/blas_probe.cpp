// SPDX-License-Identifier: Apache-2.0
// Linked with fake_openblas.cpp. Exit code 0 if the core ended up as the decision function says;
// with `no-memory`, what is said where OpenBLAS cannot get its buffers.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <tessera/process/blas_check.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/outcome.hpp>

namespace {

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
  if (argc > 1 && std::string(argv[1]) == "no-memory") return limit_memory();
  tessera::BlasStatus status = tessera::check_blas(argc, argv, true);
  status.threads = tessera::limit_blas_threads(2);
  const tessera::OpenBlas fallback{"0.3.21", "Prescott", true};
  const std::string expected =
      argc > 1 && std::string(argv[1]) == "keep"
          ? "Prescott"
          : better_core(tessera::cpu_features(), fallback).value_or("Prescott");
  std::cout << describe(status) << "; last argument " << argv[argc - 1] << '\n';
  return status.blas && status.blas->core == expected ? 0 : 1;
}
