// SPDX-License-Identifier: Apache-2.0
// A library for KOKKOS_TOOLS_LIBS: counts the kernels, copies and products of all steps, and where
// the host waits for the device in them. Writes the file TESSERA_LAUNCHES at the end:
// {"steps": 2, "kernels": {"tessera::adam": 2}, "products": {}, "copies": {}, "fences": {}}
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <impl/Kokkos_Profiling_C_Interface.h>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace {

using Counts = std::map<std::string, long>;

Counts kernels, products, copies, fences;
long steps = 0;
int depth = 0;  // of regions, from the step on; 0 outside of a step

void count(Counts& counts, const char* name) {
  if (depth > 0) ++counts[name];
}

}  // namespace

// NOLINTBEGIN: names of Kokkos
extern "C" {

/// Kokkos must not wait for the device at each event, as it does for tools that measure times.
void kokkosp_request_tool_settings(std::uint32_t, Kokkos_Tools_ToolSettings* settings) {
  settings->requires_global_fencing = false;
}
void kokkosp_push_profile_region(const char* name) {
  const bool is_step = std::string_view(name) == "tessera::step";
  if (is_step) ++steps;
  if (is_step || depth > 0) ++depth;
  if (std::string_view(name) == "tessera::gemm") count(products, name);
}
void kokkosp_pop_profile_region() {
  if (depth > 0) --depth;
}
void kokkosp_begin_parallel_for(const char* name, std::uint32_t, std::uint64_t*) {
  count(kernels, name);
}
void kokkosp_begin_parallel_reduce(const char* name, std::uint32_t, std::uint64_t*) {
  count(kernels, name);
}
void kokkosp_begin_deep_copy(Kokkos_Profiling_SpaceHandle, const char* to, const void*,
                             Kokkos_Profiling_SpaceHandle, const char*, const void*,
                             std::uint64_t) {
  count(copies, to);
}
void kokkosp_begin_fence(const char* name, std::uint32_t, std::uint64_t*) { count(fences, name); }

void kokkosp_finalize_library() {
  const char* const path = std::getenv("TESSERA_LAUNCHES");
  if (path == nullptr) return;
  std::ofstream(path) << nlohmann::json{{"steps", steps},
                                        {"kernels", kernels},
                                        {"products", products},
                                        {"copies", copies},
                                        {"fences", fences}};
}

}  // extern "C"
// NOLINTEND
