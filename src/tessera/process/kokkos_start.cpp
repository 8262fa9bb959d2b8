// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <new>
#include <stdexcept>
#include <utility>

#include <KokkosKernels_config.h>
#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/kokkos_start.hpp>

namespace tessera {
namespace {

constexpr std::string_view kokkos_prefix = "--kokkos-";

bool is_kokkos_argument(std::string_view argument) { return argument.starts_with(kokkos_prefix); }

// Which device a rank has, and so map-device-id-by, is decided here.
constexpr std::array<std::string_view, 7> passed_on = {
    "help",       "disable-warnings", "print-configuration", "tune-internals",
    "tools-help", "tools-libs",       "tools-args"};
constexpr std::string_view device_id = "device-id", num_threads = "num-threads";

/// Name, without the prefix, and value of a flag.
std::pair<std::string_view, std::string_view> name_and_value(std::string_view argument) {
  argument.remove_prefix(kokkos_prefix.size());
  const std::size_t equals = argument.find('=');
  return {argument.substr(0, equals), equals == argument.npos ? "" : argument.substr(equals + 1)};
}

/// KOKKOS_NUM_THREADS for num-threads.
std::string variable_of(std::string_view setting) {
  std::string name = fmt::format("KOKKOS_{}", setting);
  std::replace(name.begin(), name.end(), '-', '_');
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

AskedNumber parsed(std::string name, std::string_view value, std::string_view setting) {
  AskedNumber asked{std::move(name)};
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), asked.number);
  const int least = setting == device_id ? 0 : 1;
  if (error != std::errc() || end != value.data() + value.size() || asked.number < least)
    throw ConfigError(asked.name, value,
                      least == 0 ? "must be a number, 0 or more" : "must be a positive number");
  return asked;
}

std::string dotted(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string kokkos_version() { return dotted(KOKKOS_VERSION); }

std::string kokkos_kernels_version() { return dotted(KOKKOSKERNELS_VERSION); }

std::optional<AskedNumber> asked_number(const std::vector<std::string>& arguments,
                                        const Environment& environment, std::string_view setting) {
  std::optional<AskedNumber> asked;
  for (const std::string& argument : arguments) {
    if (!is_kokkos_argument(argument)) continue;
    const auto [name, value] = name_and_value(argument);
    if (name == setting) asked = parsed(fmt::format("{}{}", kokkos_prefix, name), value, setting);
  }
  const std::string variable = variable_of(setting);
  const char* value = environment(variable.c_str());
  if (!asked && value != nullptr) asked = parsed(variable, value, setting);
  return asked;
}

std::vector<std::string> reversed_own_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  std::erase_if(reversed, is_kokkos_argument);
  return reversed;
}

std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          const KokkosChoice& choice) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (!is_kokkos_argument(argument)) continue;
    const std::string_view name = name_and_value(argument).first;
    if (name == device_id || name == num_threads) continue;
    if (std::find(passed_on.begin(), passed_on.end(), name) == passed_on.end())
      throw Error(ExitCode::usage, "{0}{1} is not a known option; known options: {0}{2}, {3}, {4}",
                  kokkos_prefix, name, join(passed_on, ", "), device_id, num_threads);
    result.push_back(argument);
  }
  if (choice.device) result.push_back(fmt::format("--kokkos-device-id={}", *choice.device));
  if (choice.threads) result.push_back(fmt::format("--kokkos-num-threads={}", *choice.threads));
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
  // More than a container could ever hold.
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) return true;
  return std::string_view(error.what()).find("failed to allocate") != std::string_view::npos;
}

}  // namespace tessera
