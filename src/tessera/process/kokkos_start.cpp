// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <KokkosKernels_config.h>
#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/home.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/kokkos_start.hpp>

namespace tessera {
namespace {

constexpr std::string_view kokkos_prefix = "--kokkos-";

constexpr std::array<std::string_view, 9> kokkos_flags = {
    "help",       "disable-warnings", "print-configuration", "tune-internals", "tools-help",
    "tools-libs", "tools-args",       "num-threads",         "device-id"};

bool is_kokkos_argument(std::string_view argument) { return argument.starts_with(kokkos_prefix); }

/// Returns the name, without the prefix, and the value of a flag.
std::pair<std::string_view, std::string_view> name_and_value(std::string_view argument) {
  argument.remove_prefix(kokkos_prefix.size());
  const std::size_t equals = argument.find('=');
  return {argument.substr(0, equals), equals == argument.npos ? "" : argument.substr(equals + 1)};
}

/// Returns KOKKOS_NUM_THREADS for num-threads.
std::string variable_of(std::string_view setting) {
  std::string name = fmt::format("KOKKOS_{}", setting);
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

AskedNumber parsed(const std::string& name, std::string_view value, std::string_view setting) {
  const std::optional<int> number = number_of<int>(value);
  const int least = setting == "device-id" ? 0 : 1;
  if (!number || *number < least)
    throw ConfigError(name, value,
                      least == 0 ? "must be a number, 0 or more" : "must be a positive number");
  return {name, *number};
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
  for (std::size_t i = 0; i < reversed.size(); ++i) {
    if (reversed[i].empty())
      throw Error(ExitCode::usage, "the argument after {} is empty",
                  i + 1 < reversed.size() ? excerpt(reversed[i + 1], 100) : "the program's name");
    if (reversed[i].starts_with('-') && reversed[i].find('=') + 1 == reversed[i].size())
      throw Error(ExitCode::usage, "{} has no value", excerpt(reversed[i], 100));
    // Shells leave the ~ of --json=~/file.json alone.
    const std::size_t value = reversed[i].starts_with('-') ? reversed[i].find('=') + 1 : 0;
    reversed[i].replace(value, std::string::npos, with_home(reversed[i].substr(value)));
  }
  return reversed;
}

std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          const std::optional<int>& threads) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (!is_kokkos_argument(argument)) continue;
    const std::string_view name = name_and_value(argument).first;
    if (std::find(kokkos_flags.begin(), kokkos_flags.end(), name) == kokkos_flags.end())
      throw Error(ExitCode::usage, "{0}{1} is not a known option; known options: {0}{2}",
                  kokkos_prefix, name, join(kokkos_flags, ", "));
    result.push_back(argument);
  }
  if (threads) result.push_back(fmt::format("--kokkos-num-threads={}", *threads));
  // Kokkos warns about threads, which Tessera checks itself.
  result.emplace_back("--kokkos-disable-warnings");
  return result;
}

void initialize_kokkos(int& argc, char** argv, const std::optional<int>& threads) {
  std::vector<std::string> texts =
      kokkos_arguments({argv + std::min(argc, 1), argv + argc}, threads);
  texts.insert(texts.begin(), argc > 0 ? argv[0] : "tessera");
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

}  // namespace tessera
