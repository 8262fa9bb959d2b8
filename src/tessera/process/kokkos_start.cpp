// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
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

struct Setting {
  std::string_view flag;
  const char* variable;
  int least;
};
constexpr std::array<Setting, 2> settings = {{{"--kokkos-num-threads", "KOKKOS_NUM_THREADS", 1},
                                              {"--kokkos-device-id", "KOKKOS_DEVICE_ID", 0}}};

bool is_kokkos_argument(std::string_view argument) { return argument.starts_with(kokkos_prefix); }

/// Returns the setting whose flag, without its value, is this one; null if there is none.
const Setting* find_setting(std::string_view flag) {
  const auto found = std::ranges::find(settings, flag.substr(0, flag.find('=')), &Setting::flag);
  return found == settings.end() ? nullptr : &*found;
}

std::string dotted(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string kokkos_version() { return dotted(KOKKOS_VERSION); }

std::string kokkos_kernels_version() { return dotted(KOKKOSKERNELS_VERSION); }

std::optional<AskedNumber> asked_number(const std::vector<std::string>& arguments,
                                        const Environment& environment, std::string_view name) {
  const Setting& setting = *find_setting(fmt::format("{}{}", kokkos_prefix, name));
  std::optional<std::pair<std::string, std::string>> asked;
  if (const char* value = environment(setting.variable)) asked = {setting.variable, value};
  for (const std::string& argument : arguments)
    if (find_setting(argument) == &setting)
      asked = {std::string(setting.flag),
               argument.substr(std::min(setting.flag.size() + 1, argument.size()))};
  if (!asked) return std::nullopt;
  const std::optional<int> number = number_of<int>(asked->second);
  if (!number || *number < setting.least)
    throw ConfigError(
        asked->first, asked->second,
        setting.least == 0 ? "must be a number, 0 or more" : "must be a positive number");
  return AskedNumber{asked->first, *number};
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

void check_kokkos_arguments(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments)
    if (is_kokkos_argument(argument) && find_setting(argument) == nullptr)
      throw Error(ExitCode::usage,
                  "{} is not a known option; known are --kokkos-num-threads and "
                  "--kokkos-device-id; for other settings use the variables KOKKOS_...",
                  argument.substr(0, argument.find('=')));
}

std::optional<int> gpu_of_rank(const std::vector<std::string>& arguments,
                               const Environment& environment, int local_rank,
                               const std::optional<int>& gpus) {
  if (!gpus) return std::nullopt;
  if (const auto asked = asked_number(arguments, environment, "device-id")) return asked->number;
  for (const char* const variable : {"KOKKOS_MAP_DEVICE_ID_BY", "KOKKOS_VISIBLE_DEVICES"})
    if (environment(variable) != nullptr) return std::nullopt;
  return local_rank % *gpus;
}

void initialize_kokkos(int& argc, char** argv, const std::optional<int>& threads,
                       const std::optional<int>& gpu) {
  Kokkos::InitializationSettings chosen;
  chosen.set_disable_warnings(true);  // about threads, which Tessera checks itself
  if (threads) chosen.set_num_threads(*threads);
  if (gpu) chosen.set_device_id(*gpu);
  // Otherwise Kokkos waits for all streams, those of NCCL too, before it tells RegionTimer of a
  // region. A library of tools that Kokkos loads decides for itself.
  Kokkos::Tools::Experimental::set_request_tool_settings_callback(
      [](std::uint32_t, Kokkos_Tools_ToolSettings* settings) {
        settings->requires_global_fencing = false;
      });
  Kokkos::initialize(chosen);
  // A callback that is set counts as a tool: regions and events would take longer.
  Kokkos::Tools::Experimental::set_request_tool_settings_callback(nullptr);
  char** const end = std::remove_if(argv, argv + argc, is_kokkos_argument);
  if (end != argv + argc) *end = nullptr;
  argc = static_cast<int>(end - argv);
}

}  // namespace tessera
