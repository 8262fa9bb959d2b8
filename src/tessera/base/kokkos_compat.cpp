// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <string_view>

#include <KokkosKernels_config.h>
#include <fmt/format.h>

#include <tessera/base/kokkos_compat.hpp>

namespace tessera {
namespace {

constexpr std::string_view kokkos_prefix = "--kokkos-";

bool is_kokkos_argument(std::string_view argument) { return argument.starts_with(kokkos_prefix); }

// Before 3.7 the flags were called --kokkos-threads and --kokkos-device.
std::string spelled(const std::string& argument, int version) {
  constexpr std::array<std::array<std::string_view, 2>, 2> names = {
      {{"--kokkos-threads", "--kokkos-num-threads"}, {"--kokkos-device", "--kokkos-device-id"}}};
  const std::size_t equals = argument.find('=');
  const std::string_view name = std::string_view(argument).substr(0, equals);
  for (const auto& [old_name, new_name] : names) {
    if (name != old_name && name != new_name) continue;
    const std::string_view right = version < 30700 ? old_name : new_name;
    return std::string(right) + (equals == std::string::npos ? "" : argument.substr(equals));
  }
  return argument;
}

std::string dotted(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string kokkos_version() { return dotted(KOKKOS_VERSION); }

std::string kokkos_kernels_version() {
#ifdef KOKKOSKERNELS_VERSION
  return dotted(KOKKOSKERNELS_VERSION);
#else
  return "unknown";
#endif
}

std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          std::optional<int> device_id, int kokkos_version_number) {
  constexpr std::array<std::string_view, 5> flags = {"--kokkos-device", "--kokkos-device-id",
                                                     "--kokkos-ndevices", "--kokkos-num-devices",
                                                     "--kokkos-map-device-id-by"};
  constexpr std::array variables = {"KOKKOS_DEVICE_ID", "KOKKOS_NUM_DEVICES", "KOKKOS_RAND_DEVICES",
                                    "KOKKOS_MAP_DEVICE_ID_BY"};
  bool is_chosen = std::any_of(variables.begin(), variables.end(),
                               [](const char* name) { return std::getenv(name) != nullptr; });
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (!is_kokkos_argument(argument)) continue;
    const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
    is_chosen = is_chosen || std::find(flags.begin(), flags.end(), name) != flags.end();
    result.push_back(spelled(argument, kokkos_version_number));
  }
  if (device_id && !is_chosen) {
    result.push_back(
        spelled(fmt::format("--kokkos-device-id={}", *device_id), kokkos_version_number));
  }
  return result;
}

void initialize_kokkos(int& argc, char** argv, std::optional<int> device_id) {
  std::vector<std::string> texts = {argc > 0 ? argv[0] : "tessera"};
  for (std::string& text : kokkos_arguments(
           std::vector<std::string>(argv + std::min(argc, 1), argv + argc), device_id)) {
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
