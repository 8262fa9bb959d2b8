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

void check_same_on_all_ranks(const Communicator& world, const Config& config) {
  // Values are compared as text, in which NaN equals NaN.
  std::vector<std::string> mine;
  for (const Setting& setting : settings()) mine.push_back(to_toml(setting.get(config)));
  const nlohmann::json first = broadcast_json(world, mine);
  collectively(world, [&] {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (first[i] == mine[i]) continue;
      throw ConfigError(settings()[i].key, mine[i],
                        "on rank {}; must be the same on every rank, but rank 0 has {}",
                        world.rank(), first[i].get<std::string>());
    }
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
  const Size first = broadcast_json(world, value).get<Size>();
  collectively(world, [&] {
    if (value != first)
      throw ConfigError(key, std::to_string(value),
                        "on rank {}; must be the same on every rank, but rank 0 has {}",
                        world.rank(), first);
  });
}

std::string agreed_checksums(const Communicator& world, const DataConfig& data,
                             const ModelSpec& model) {
  const std::string mine = collectively(world, [&] { return sample_checksums(data, model); });
  const std::string first = broadcast_json(world, mine);
  collectively(world, [&] {
    if (mine != first)
      throw Error(ExitCode::usage, "{}: has other samples on rank {} than on rank 0",
                  data_files_text(data), world.rank());
  });
  return first;
}

}  // namespace tessera
