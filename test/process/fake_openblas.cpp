// SPDX-License-Identifier: Apache-2.0
// Looks like an OpenBLAS that did not recognise the processor. FAKE_OPENBLAS names a flaw.
#include <cstdlib>
#include <cstring>

namespace {
bool has_flaw(const char* name) {
  const char* flaw = std::getenv("FAKE_OPENBLAS");
  return flaw != nullptr && std::strcmp(flaw, name) == 0;
}
}  // namespace

extern "C" {

char* openblas_get_corename() {
  static char fallback[] = "Prescott";
  char* asked = std::getenv("OPENBLAS_CORETYPE");
  return asked == nullptr || has_flaw("deaf") ? fallback : asked;
}

char* openblas_get_config() {
  static char dynamic[] =
      "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Prescott MAX_THREADS=64";
  static char fixed[] = "OpenBLAS 0.3.21 NO_LAPACKE NO_AFFINITY Prescott MAX_THREADS=64";
  return has_flaw("fixed") ? fixed : dynamic;
}

int threads = 64;
void openblas_set_num_threads(int number) { threads = number; }
int openblas_get_num_threads() { return threads; }
}
