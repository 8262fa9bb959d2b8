// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string_view>

#include <KokkosKernels_config.h>
#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/kokkos_start.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

constexpr std::string_view kokkos_prefix = "--kokkos-";

bool is_kokkos_argument(std::string_view argument) { return argument.starts_with(kokkos_prefix); }

constexpr std::array<std::string_view, 2> flags_with_number = {"num-threads", "device-id"};
constexpr std::array<std::string_view, 8> other_flags = {
    "help",       "disable-warnings", "print-configuration", "tune-internals",
    "tools-help", "tools-libs",       "tools-args",          "map-device-id-by"};

// Kokkos ends the process where a number is none, and ignores what it does not know.
void check_argument(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  const std::string_view flag = argument.substr(0, equals);
  const std::string_view name = flag.substr(kokkos_prefix.size());
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of(flags_with_number)) {
    const std::string_view value = equals == argument.npos ? "" : argument.substr(equals + 1);
    const bool is_number =
        !value.empty() && value.size() <= 6 && value.find_first_not_of("0123456789") == value.npos;
    const bool may_be_zero = name == "device-id";
    if (!is_number || (!may_be_zero && value.find_first_not_of('0') == value.npos))
      throw ConfigError(flag, value,
                        may_be_zero ? "must be a number" : "must be a positive number");
  } else if (!is_one_of(other_flags)) {
    std::vector<std::string> all(other_flags.begin(), other_flags.end());
    all.insert(all.end(), flags_with_number.begin(), flags_with_number.end());
    throw Error(ExitCode::usage, fmt::format("{} is not known; Kokkos takes {}{}", flag,
                                             kokkos_prefix, join(all, ", ")));
  }
}

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
  for (const std::string& argument : result) check_argument(argument);
  if (choice.device && !is_given("--kokkos-device-id", "KOKKOS_DEVICE_ID") &&
      !is_given("--kokkos-map-device-id-by", "KOKKOS_MAP_DEVICE_ID_BY"))
    result.push_back(fmt::format("--kokkos-device-id={}", *choice.device));
  if (choice.threads && !is_given("--kokkos-num-threads", "KOKKOS_NUM_THREADS"))
    result.push_back(fmt::format("--kokkos-num-threads={}", *choice.threads));
  // They are about threads, which have been checked.
  result.emplace_back("--kokkos-disable-warnings");
  return result;
}

void initialize_kokkos(int& argc, char** argv, const KokkosChoice& choice) {
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
