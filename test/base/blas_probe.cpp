// SPDX-License-Identifier: Apache-2.0
// Linked with fake_openblas.cpp. Exit code 0 if the core ended up as the decision function says.
#include <cstdlib>
#include <iostream>
#include <string>

#include <tessera/base/blas_check.hpp>

int main(int argc, char** argv) {
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
