// SPDX-License-Identifier: Apache-2.0
// Looks like an OpenBLAS that did not recognize the processor. With FAKE_OPENBLAS=fixed it holds
// the kernels of one core only.
#include <cstdlib>

extern "C" {

char* openblas_get_corename() {
  static char fallback[] = "Prescott";
  return fallback;
}

char* openblas_get_config() {
  static char dynamic[] =
      "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Prescott MAX_THREADS=64";
  static char fixed[] = "OpenBLAS 0.3.21 NO_LAPACKE NO_AFFINITY Prescott MAX_THREADS=64";
  return std::getenv("FAKE_OPENBLAS") != nullptr ? fixed : dynamic;
}

int threads = 64;
void openblas_set_num_threads(int number) { threads = number; }
int openblas_get_num_threads() { return threads; }
}
