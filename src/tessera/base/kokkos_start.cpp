// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string_view>

#include <KokkosKernels_config.h>
#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <tessera/base/kokkos_start.hpp>

namespace tessera {
namespace {

constexpr std::string_view kokkos_prefix = "--kokkos-";

bool is_kokkos_argument(std::string_view argument) { return argument.starts_with(kokkos_prefix); }

std::string dotted(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string kokkos_version() { return dotted(KOKKOS_VERSION); }

std::string kokkos_kernels_version() { return dotted(KOKKOSKERNELS_VERSION); }

std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          const KokkosChoice& choice) {
  std::vector<std::string> result;
  const auto is_given = [&](const char* flag, const char* variable) {
    return std::getenv(variable) != nullptr ||
           std::any_of(result.begin(), result.end(),
                       [&](const std::string& argument) { return argument.starts_with(flag); });
  };
  std::copy_if(arguments.begin(), arguments.end(), std::back_inserter(result), is_kokkos_argument);
  if (choice.device && !is_given("--kokkos-device-id", "KOKKOS_DEVICE_ID") &&
      !is_given("--kokkos-map-device-id-by", "KOKKOS_MAP_DEVICE_ID_BY"))
    result.push_back(fmt::format("--kokkos-device-id={}", *choice.device));
  if (choice.threads && !is_given("--kokkos-num-threads", "KOKKOS_NUM_THREADS"))
    result.push_back(fmt::format("--kokkos-num-threads={}", *choice.threads));
  return result;
}

void initialize_kokkos(int& argc, char** argv, const KokkosChoice& choice) {
  // Kokkos warns where nothing is said about binding. Threads then run wherever the launcher lets
  // their rank run, which is what this value says.
  setenv("OMP_PROC_BIND", "false", 0);
  std::vector<std::string> texts = {argc > 0 ? argv[0] : "tessera"};
  for (std::string& text :
       kokkos_arguments(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), choice)) {
    texts.push_back(std::move(text));
  }
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(texts.size());
  Kokkos::initialize(count, pointers.data());

  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    if (i == 0 || !is_kokkos_argument(argv[i])) argv[kept++] = argv[i];
  }
  if (kept < argc) argv[kept] = nullptr;
  argc = kept;
}

bool is_allocation_failure(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  return std::string_view(error.what()).find("failed to allocate") != std::string_view::npos;
}

}  // namespace tessera
