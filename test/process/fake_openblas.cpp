// SPDX-License-Identifier: Apache-2.0
// Looks like an OpenBLAS that did not recognize the processor.
extern "C" {

char* openblas_get_corename() {
  static char core[] = "Prescott";
  return core;
}

char* openblas_get_config() {
  static char config[] =
      "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Prescott MAX_THREADS=64";
  return config;
}

int threads = 64;
void openblas_set_num_threads(int number) { threads = number; }
int openblas_get_num_threads() { return threads; }
}
