// SPDX-License-Identifier: Apache-2.0
#include "results/process_id.hpp"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>

#include <tessera/base/host_info.hpp>

namespace tessera::bench {
namespace {

/// What Linux tells about a process; nothing elsewhere.
struct ProcessState {
  std::string letter;
  long long start = 0;  ///< clock ticks since the system has started
};

std::optional<ProcessState> state_of(int id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // Behind the name in parentheses, which may hold anything: the state, then 18 numbers, the start.
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  ProcessState state;
  fields >> state.letter;
  std::string skipped;
  for (int i = 0; i < 18; ++i) fields >> skipped;
  if (!(fields >> state.start)) return std::nullopt;
  return state;
}

}  // namespace

nlohmann::json this_process() {
  const int id = getpid();
  const auto state = state_of(id);
  return {{"host", host_name()},
          {"id", id},
          {"start", state ? nlohmann::json(state->start) : nlohmann::json()}};
}

bool is_here(const nlohmann::json& process) { return process.value("host", "") == host_name(); }

bool is_alive(const nlohmann::json& process) {
  const int id = process.value("id", 0);
  if (id <= 0 || (kill(id, 0) != 0 && errno != EPERM)) return false;
  const auto state = state_of(id);
  if (!state || !process.contains("start") || process.at("start").is_null()) return true;
  return state->letter != "Z" && state->letter != "X" && state->start == process.at("start");
}

}  // namespace tessera::bench
