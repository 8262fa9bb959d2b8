// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include <tessera/base/text.hpp>
#include <tessera/process/cpu_quota.hpp>

namespace tessera {
namespace {

/// A tree of control groups that can limit processors, as it is mounted.
struct Hierarchy {
  bool is_version_2;
  std::string root;   ///< the group that is mounted: a container sees only its own
  std::string place;  ///< its folder
};

bool lists_cpu(std::string_view names) {
  const auto list = split_text(names, ',');
  return std::find(list.begin(), list.end(), "cpu") != list.end();
}

std::vector<Hierarchy> hierarchies(const std::string& mountinfo) {
  std::vector<Hierarchy> found;
  std::ifstream file(mountinfo);
  for (std::string line; std::getline(file, line);) {
    // "ID PARENT DEVICE ROOT PLACE OPTIONS [FIELD...] - TYPE SOURCE OPTIONS"
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skipped, root, place, type, options;
    before >> skipped >> skipped >> skipped >> root >> place;
    after >> type >> skipped >> options;
    if (type == "cgroup2" || (type == "cgroup" && lists_cpu(options)))
      found.push_back({type == "cgroup2", root, place});
  }
  return found;
}

/// The group of the process, "/pod/container"; empty if the file names none.
std::string group_of(const std::string& membership, bool is_version_2) {
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    // "NUMBER:CONTROLLERS:GROUP"; version 2 names no controllers.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_version_2 ? controllers.empty() : lists_cpu(controllers)) return line.substr(second + 1);
  }
  return "";
}

/// A group's path below its mounted root; empty: the root itself, also where the group is outside.
std::string path_below(const std::string& root, std::string group) {
  const std::string prefix = root == "/" ? "" : root;
  if (!(group + "/").starts_with(prefix + "/") || group.find("/..") != group.npos) return "";
  group.erase(0, prefix.size());
  return group == "/" ? "" : group;
}

std::optional<double> quota_in(const std::string& folder, bool is_version_2) {
  double quota = 0, period = 0;  // in microseconds; the quota of a group without one is max or -1
  if (is_version_2)
    std::ifstream(folder + "/cpu.max") >> quota >> period;
  else if (std::ifstream(folder + "/cpu.cfs_quota_us") >> quota)
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return quota / period;
}

}  // namespace

std::optional<double> cpu_quota(const std::string& process) {
  std::optional<double> least;
  for (const auto& [is_version_2, root, place] : hierarchies(process + "/mountinfo")) {
    std::string group = path_below(root, group_of(process + "/cgroup", is_version_2));
    for (;; group.resize(group.rfind('/'))) {
      if (const auto quota = quota_in(place + group, is_version_2))
        least = std::min(least.value_or(*quota), *quota);
      if (group.empty()) break;
    }
  }
  return least;
}

}  // namespace tessera
