// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <dlfcn.h>

#include <tessera/base/openblas_core.hpp>

namespace tessera {

CpuFeatures cpu_features() {
  CpuFeatures cpu;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  cpu.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
  return cpu;
}

std::string openblas_core() {
  auto* const name = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? "" : name();
}

std::string faster_core(const CpuFeatures& cpu, std::string_view core) {
  constexpr std::array<std::string_view, 3> with_avx2 = {"Haswell", "Zen", "Excavator"};
  constexpr std::array<std::string_view, 12> older = {
      "Prescott", "Core2",  "Penryn",    "Dunnington", "Nehalem",    "Sandybridge",
      "Opteron",  "Bobcat", "Barcelona", "Bulldozer",  "Piledriver", "Steamroller"};
  const bool is_older = std::find(older.begin(), older.end(), core) != older.end();
  const bool has_avx2 = std::find(with_avx2.begin(), with_avx2.end(), core) != with_avx2.end();
  if (cpu.avx512 && (is_older || has_avx2)) return "SkylakeX";
  return cpu.avx2_fma && is_older ? "Haswell" : "";
}

}  // namespace tessera
