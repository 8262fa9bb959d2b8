// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/data/sample_checksums.hpp>

namespace tessera {

namespace {

/// Calls reject(value of rank 0) where a rank's value differs. If that throws on one rank, every
/// rank throws its Error. Collective.
template <class Reject>
nlohmann::json compare_with_first(const Communicator& world, const nlohmann::json& mine,
                                  const Reject& reject) {
  const nlohmann::json first = broadcast_json(world, mine);
  collectively(world, [&] {
    if (mine != first) reject(first);
  });
  return first;
}

[[noreturn]] void reject_on(const Communicator& world, std::string_view key,
                            const std::string& mine, const std::string& first) {
  throw ConfigError(key, mine, "on rank {}; must be the same on every rank, but rank 0 has {}",
                    world.rank(), first);
}

}  // namespace

void check_same_on_all_ranks(const Communicator& world, const Config& config) {
  // Values are compared as text, in which NaN equals NaN.
  std::vector<std::string> mine;
  for (const Setting& setting : settings()) mine.push_back(to_toml(setting.get(config)));
  compare_with_first(world, mine, [&](const nlohmann::json& first) {
    std::size_t i = 0;
    while (first[i] == mine[i]) ++i;
    reject_on(world, settings()[i].key, mine[i], first[i]);
  });
}

Config agreed_config(const Communicator& world, const ConfigSource& source) {
  const Topology topology(node_of_ranks(world));
  const Config config = collectively(world, [&] {
    Config loaded = load_config(source);
    count_samples(loaded);
    return resolve(loaded, topology);
  });
  check_same_on_all_ranks(world, config);
  return config;
}

void check_same_everywhere(const Communicator& world, const char* key, Size value) {
  compare_with_first(world, value, [&](const nlohmann::json& first) {
    reject_on(world, key, std::to_string(value), first.dump());
  });
}

std::string agreed_checksums(const Communicator& world, const DataConfig& data,
                             const ModelSpec& model) {
  const std::string mine = collectively(world, [&] { return sample_checksums(data, model); });
  return compare_with_first(world, mine, [&](const nlohmann::json&) {
    throw Error(ExitCode::usage, "{}: has other samples on rank {} than on rank 0",
                data_files_text(data), world.rank());
  });
}

}  // namespace tessera
