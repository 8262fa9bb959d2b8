// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera {
namespace {

[[noreturn]] void reject(const char* key, const nlohmann::json& value, const std::string& allowed) {
  throw ConfigError(key, to_toml(value), allowed);
}

/// Options of the strategies that gather parameters when they need them.
void check_gathering(const DistributedConfig& config, bool gathers) {
  const DistributedConfig unset;
  const auto needs_gathering = [&](const char* key, bool value, bool default_value) {
    if (value != default_value && !gathers)
      reject(key, value,
             fmt::format("needs distributed.strategy = \"fsdp\" or \"hybrid\", which gather "
                         "parameters; \"{}\" holds them whole",
                         config.strategy));
  };
  needs_gathering("distributed.prefetch", config.prefetch, unset.prefetch);
  needs_gathering("distributed.reshard_after_forward", config.reshard_after_forward,
                  unset.reshard_after_forward);
  needs_gathering("distributed.keep_last_unit", config.keep_last_unit, unset.keep_last_unit);
  if (!config.keep_last_unit && !config.reshard_after_forward)
    reject("distributed.keep_last_unit", false,
           "must be true with distributed.reshard_after_forward = false, which keeps every unit");
}

}  // namespace

Strategy strategy_of(const DistributedConfig& config) {
  const auto found = std::find(strategy_names.begin(), strategy_names.end(), config.strategy);
  return static_cast<Strategy>(found - strategy_names.begin());
}

void check_mesh_of_strategy(const DistributedConfig& config, const MeshShape& mesh) {
  const Strategy strategy = strategy_of(config);
  if (strategy == Strategy::hybrid && !mesh.find("fsdp"))
    reject("distributed.strategy", config.strategy,
           fmt::format("needs a mesh with an axis fsdp to shard over, such as data=2,fsdp=4, where "
                       "data replicates; the mesh is {}",
                       mesh.to_string()));
  if (strategy == Strategy::tensor)
    for (const std::string& axis : batch_axes(mesh))
      if (mesh.size_of(axis) > 1)
        reject("distributed.strategy", config.strategy,
               fmt::format("needs a mesh whose axis {} is 1, not {}, as it splits nothing but "
                           "layers; a mesh axis model goes with every other strategy, too",
                           axis, mesh.size_of(axis)));
}

void check_options_of_strategy(const DistributedConfig& config, const MeshShape& mesh) {
  const Strategy strategy = strategy_of(config);
  check_gathering(config, strategy == Strategy::fsdp || strategy == Strategy::hybrid);
  const bool buckets = strategy == Strategy::data || strategy == Strategy::tensor;
  const Size default_bytes = DistributedConfig{}.bucket_bytes;
  if (config.bucket_bytes != default_bytes && !buckets)
    reject("distributed.bucket_bytes", config.bucket_bytes,
           fmt::format("must be {}, the default, with distributed.strategy = \"{}\", which reduces "
                       "unit by unit; data and tensor reduce buckets",
                       default_bytes, config.strategy));
  if (config.sequence_parallel && !mesh.find("model"))
    reject("distributed.sequence_parallel", true,
           fmt::format("needs a mesh axis model; the mesh is {}", mesh.to_string()));
}

}  // namespace tessera
