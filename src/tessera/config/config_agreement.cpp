// SPDX-License-Identifier: Apache-2.0
#include <limits>
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
#include <tessera/io/whole_file.hpp>

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

/// Makes this process a rank of the configured mesh. Without others there is nothing to compare.
void be_one_of_many(Config& config, Size rank, Size launched) {
  const Size ranks = planned_ranks(config);
  const std::string given = std::to_string(rank);
  if (launched > 1)
    throw ConfigError("--as-rank", given, "needs one process, but this launch has {}", launched);
  if (rank < 0 || rank >= ranks || ranks > std::numeric_limits<int>::max())
    throw ConfigError("--as-rank", given, "must be 0 to {}, a rank of --mesh or --ranks-expected",
                      ranks - 1);
  for (const auto& [key, is_set] :
       {std::pair("checkpoint.directory", config.checkpoint.enabled()),
        {"checkpoint.init_from", !config.checkpoint.init_from.empty()},
        {"data.validation_samples", config.data.validation_samples > 0},
        {"training.check_replicas_every", config.training.check_replicas_every > 0},
        {"output.hashes", !config.output.hashes.empty()},
        {"distributed.backend", config.comm.backend != Backend::automatic}})
    if (is_set)
      throw ConfigError("--as-rank", given,
                        "sends nothing, and has nothing to load, save or compare; unset {}", key);
  if (ranks > 1) config.comm.fake = FakeRank{static_cast<int>(rank), static_cast<int>(ranks)};
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
  const std::string& file = config.training.distributed.schedule_file;
  if (file.empty()) return;
  const std::string text = collectively(world, [&] { return read_text(file); });
  compare_with_first(world, text, [&](const nlohmann::json&) {
    throw ConfigError("distributed.schedule_file", file, "on rank {} differs from that of rank 0",
                      world.rank());
  });
}

Topology topology_of(const Communicator& world, const Config& config) {
  return config.comm.fake ? planned_topology(config) : Topology(node_of_ranks(world));
}

Config agreed_config(const Communicator& world, const ConfigSource& source) {
  const Topology topology(node_of_ranks(world));
  const Config config = collectively(world, [&] {
    Config loaded = load_config(source);
    count_samples(loaded);
    if (source.as_rank) be_one_of_many(loaded, *source.as_rank, world.size());
    return resolve(loaded, loaded.comm.fake ? planned_topology(loaded) : topology);
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
