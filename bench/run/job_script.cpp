// SPDX-License-Identifier: Apache-2.0
#include "run/job_script.hpp"

#include <sstream>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

[[noreturn]] void reject(const std::string& placeholder, const std::string& place,
                         const std::map<std::string, std::string>& values) {
  std::vector<std::string> known;
  for (const auto& [key, value] : values) known.push_back("@" + key + "@");
  throw ConfigError("--template", place, "unknown placeholder {}; must be one of {}", placeholder,
                    join(known));
}

// g++ 12 warns in std::regex under sanitizers.
/// Returns "name" if the line has @name@ at `begin`, else "".
std::string placeholder_at(const std::string& line, std::size_t begin) {
  if (line[begin] != '@') return "";
  const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", begin + 1);
  if (end == std::string::npos || line[end] != '@') return "";
  return line.substr(begin + 1, end - begin - 1);
}

}  // namespace

const std::vector<JobScheduler>& schedulers() {
  static const std::vector<JobScheduler> all{
      {"slurm", "sbatch"}, {"flux", "flux batch"}, {"pbs", "qsub"}};
  return all;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string fill_template(std::string_view text, const std::string& name,
                          const std::map<std::string, std::string>& values) {
  std::string filled;
  bool runs = false;
  std::istringstream lines{std::string(text)};
  Size number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    for (std::size_t i = 0; i < line.size();) {
      const std::string key = placeholder_at(line, i);
      if (key.empty()) {
        filled += line[i++];
        continue;
      }
      const auto value = values.find(key);
      if (value == values.end())
        reject("@" + key + "@", fmt::format("{}:{}", name, number), values);
      runs |= key == "run";
      filled += value->second;
      i += key.size() + 2;
    }
    filled += '\n';
  }
  if (!runs) throw ConfigError("--template", name, "must contain @run@, where the cases run");
  return filled;
}

}  // namespace tessera::bench
