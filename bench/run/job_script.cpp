// SPDX-License-Identifier: Apache-2.0
#include "run/job_script.hpp"

#include <algorithm>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

#include "run/job_files.hpp"

namespace tessera::bench {
namespace {

[[noreturn]] void reject(const std::string& placeholder, const std::string& place,
                         const std::map<std::string, std::string>& values) {
  std::vector<std::string> known;
  for (const auto& [key, value] : values) known.push_back("@" + key + "@");
  throw ConfigError(
      "--template", place,
      fmt::format("unknown placeholder {}; must be one of {}", placeholder, join(known)));
}

}  // namespace

std::string_view JobScheduler::job_template() const {
  return job_file(std::string(name) + ".template");
}

const std::vector<JobScheduler>& schedulers() {
  static const std::vector<JobScheduler> all{
      {"slurm", "sbatch"}, {"flux", "flux batch"}, {"pbs", "qsub"}};
  return all;
}

std::string_view until_done_script() { return job_file("until_done.sh"); }

std::string shell_word(const std::string& text) {
  static const std::regex plain("[A-Za-z0-9_@%+=:,./-]+");
  if (std::regex_match(text, plain)) return text;
  return fmt::format("'{}'", std::regex_replace(text, std::regex("'"), "'\\''"));
}

std::string fill_template(std::string_view text, const std::string& name,
                          const std::map<std::string, std::string>& values) {
  static const std::regex placeholder("@([a-z_]+)@");
  std::string filled;
  bool runs = false;
  std::istringstream lines{std::string(text)};
  Size number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    auto copied = line.cbegin();
    for (std::sregex_iterator found(line.cbegin(), line.cend(), placeholder), end; found != end;
         ++found) {
      const auto value = values.find(found->str(1));
      if (value == values.end()) reject(found->str(), fmt::format("{}:{}", name, number), values);
      runs |= value->first == "run";
      filled.append(copied, (*found)[0].first).append(value->second);
      copied = (*found)[0].second;
    }
    filled.append(copied, line.cend()).push_back('\n');
  }
  if (!runs) throw ConfigError("--template", name, "must contain @run@, where the cases run");
  return filled;
}

}  // namespace tessera::bench
