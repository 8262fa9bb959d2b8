// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <filesystem>
#include <variant>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/setting_types.hpp>
#include <tessera/config/toml_text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/predict/machine_file.hpp>

namespace tessera {
namespace {

/// A key of a TOML table and the member of T that it sets.
template <class T>
struct MachineKey {
  std::string_view name;
  std::variant<std::string T::*, std::vector<std::string> T::*, Device T::*, Size T::*, double T::*>
      member;
  double least = 0;        ///< smallest allowed number
  double most = HUGE_VAL;  ///< largest allowed number
  std::string_view doc;    ///< comment in a written file
};

constexpr double tiny = 1e-300;  // the smallest allowed number where 0 is not allowed

const std::array<MachineKey<Machine>, 11> machine_keys{{
    {"name", &Machine::name, 0, 0, ""},
    {"device", &Machine::device, 0, 0, "of a rank: cpu or gpu"},
    {"emulated_products", &Machine::emulated_products, 0, 0,
     "16-bit types that products widen to float32"},
    {"memory_bytes", &Machine::memory_bytes, 1, HUGE_VAL, "of a rank"},
    {"memory_bytes_per_second", &Machine::memory_bytes_per_second, tiny, HUGE_VAL,
     "reached by the kernels of a rank"},
    {"kernel_seconds", &Machine::kernel_seconds, 0, HUGE_VAL, "overhead of each kernel"},
    {"function_seconds", &Machine::function_seconds, 0, HUGE_VAL,
     "of an exponential function in a long loop"},
    {"product_overlap", &Machine::product_overlap, 0, 1,
     "part of the memory traffic of products that arithmetic hides"},
    {"half_rate_side", &Machine::half_rate_side, 0, HUGE_VAL,
     "shortest side of products that reach half of their rate"},
    {"block_byte_seconds", &Machine::block_byte_seconds, 0, HUGE_VAL,
     "added to products of blocks of wider matrices, for each byte of them"},
    {"overlap", &Machine::overlap, 0, 1, "part of a non-blocking call that computation can hide"},
}};
const std::array<MachineKey<CacheLevel>, 2> cache_keys{{
    {"bytes", &CacheLevel::bytes, 1, HUGE_VAL, "of a rank"},
    {"bytes_per_second", &CacheLevel::bytes_per_second, tiny, HUGE_VAL,
     "reached by the kernels of a rank whose step uses no more than `bytes`"},
}};
const std::array<MachineKey<NetworkLevel>, 6> network_keys{{
    {"name", &NetworkLevel::name, 0, 0, ""},
    {"ranks", &NetworkLevel::ranks, 1, HUGE_VAL, "ranks that this level connects"},
    {"latency_seconds", &NetworkLevel::latency_seconds, 0, HUGE_VAL, "of a message"},
    {"rendezvous_seconds", &NetworkLevel::rendezvous_seconds, 0, HUGE_VAL,
     "added to each message longer than eager_bytes"},
    {"eager_bytes", &NetworkLevel::eager_bytes, 0, HUGE_VAL, ""},
    {"bytes_per_second", &NetworkLevel::bytes_per_second, tiny, HUGE_VAL,
     "in each direction, out of a rank or out of a group of the inner level"},
}};
constexpr std::string_view rates = "machine.flops_per_second.";
constexpr std::array<std::string_view, 5> product_types{"float32", "float64", "bfloat16", "float16",
                                                        "tf32"};
constexpr std::array<std::string_view, 2> emulated_types{"bfloat16", "float16"};

void check_range(const std::string& key, const nlohmann::json& value, double least, double most) {
  if (!value.is_number()) return;
  const double number = value.get<double>();
  if (number >= least && number <= most && std::isfinite(number)) return;
  reject(key, value,
         most < HUGE_VAL ? fmt::format("must be from {} to {}", least, most)
         : least > 0     ? "must be positive and finite"
                         : "must be finite and not negative");
}

template <class T, std::size_t N>
void set(T& table, const std::array<MachineKey<T>, N>& keys, const std::string& prefix,
         const std::string& name, const nlohmann::json& value) {
  std::vector<std::string_view> names;
  for (const MachineKey<T>& key : keys) {
    names.push_back(key.name);
    if (key.name != name) continue;
    std::visit([&](auto member) { setting_types::assign(prefix + name, value, table.*member); },
               key.member);
    return check_range(prefix + name, value, key.least, key.most);
  }
  reject(prefix + name, value, "is not a known key; the key " + must_be_one_of(name, names));
}

/// Throws Error (usage) if a required key is missing.
void require(bool is_given, const std::string& path, std::string_view key) {
  if (!is_given) throw Error(ExitCode::usage, "{}: {} is missing", path, key);
}

/// Checks that all required keys are there, that caches grow and that levels are nested. Latencies
/// and overheads are optional.
void check_whole(const Machine& machine, const std::string& path) {
  for (const std::string& type : machine.emulated_products)
    if (std::find(emulated_types.begin(), emulated_types.end(), type) == emulated_types.end())
      reject("machine.emulated_products", type, "the type " + must_be_one_of(type, emulated_types));
  require(!machine.flops_per_second.empty(), path, "[machine.flops_per_second]");
  require(machine.memory_bytes_per_second > 0, path, "machine.memory_bytes_per_second");
  require(machine.memory_bytes > 0, path, "machine.memory_bytes");
  require(!machine.network.empty(), path, "[[network]]");
  Size smaller = 0;
  for (const CacheLevel& cache : machine.caches) {
    require(cache.bytes > 0, path, "cache.bytes");
    require(cache.bytes_per_second > 0, path, "cache.bytes_per_second");
    if (cache.bytes <= smaller)
      throw ConfigError("cache.bytes", std::to_string(cache.bytes),
                        "must be more than the {} bytes of the cache before", smaller);
    smaller = cache.bytes;
  }
  Size inner = 1;
  for (const NetworkLevel& level : machine.network) {
    require(level.bytes_per_second > 0, path, "network.bytes_per_second");
    if (level.ranks % inner != 0 || (level.ranks == inner && inner > 1))
      throw ConfigError("network.ranks", std::to_string(level.ranks),
                        "must be a multiple of the {} ranks of the inner level", inner);
    inner = level.ranks;
  }
}

/// Appends the tables of [[name]] to `levels`.
template <class Level, std::size_t N>
void add_levels(std::vector<Level>& levels, const std::array<MachineKey<Level>, N>& keys,
                const std::string& name, const nlohmann::json& tables) {
  if (!tables.is_array()) reject(name, tables, "must be an array of tables: [[" + name + "]]");
  for (const nlohmann::json& table : tables) {
    Level& added = levels.emplace_back();
    for (const auto& [key, value] : table.items()) set(added, keys, name + ".", key, value);
  }
}

void set_rate(Machine& machine, const std::string& key, const nlohmann::json& value) {
  const std::string type = key.substr(rates.size());
  if (std::find(product_types.begin(), product_types.end(), type) == product_types.end())
    reject(key, value, "the type " + must_be_one_of(type, product_types));
  setting_types::assign(key, value, machine.flops_per_second[type]);
  check_range(key, value, tiny, HUGE_VAL);
}

template <class T, std::size_t N>
std::string lines(const T& table, const std::array<MachineKey<T>, N>& keys) {
  std::string text;
  for (const MachineKey<T>& key : keys) {
    const std::string value = std::visit(
        [&](auto member) { return to_toml(setting_types::as_json(table.*member)); }, key.member);
    const std::string line = fmt::format("{} = {}", key.name, value);
    text += key.doc.empty() ? line + "\n" : fmt::format("{:<44} # {}\n", line, key.doc);
  }
  return text;
}

}  // namespace

Machine load_machine(const std::string& path) {
  Machine machine;
  machine.name = std::filesystem::path(path).stem().string();
  const std::string prefix = "machine.";
  bool has_device = false;
  for (const auto& [key, value] : parse_toml(read_text(path), path)) {
    has_device |= key == "machine.device";
    if (key == "network")
      add_levels(machine.network, network_keys, key, value);
    else if (key == "cache")
      add_levels(machine.caches, cache_keys, key, value);
    else if (key.starts_with(rates))
      set_rate(machine, key, value);
    else if (key.starts_with(prefix))
      set(machine, machine_keys, prefix, key.substr(prefix.size()), value);
    else
      reject(key, value,
             "is not a known key; a machine file has [machine], [[cache]] and [[network]]");
  }
  require(has_device, path, "machine.device, which is \"cpu\" or \"gpu\",");
  check_whole(machine, path);
  return machine;
}

std::string machine_as_toml(const Machine& machine) {
  std::string text = "[machine]\n" + lines(machine, machine_keys);
  text +=
      "\n[machine.flops_per_second]                  # reached by the matrix products of a rank\n";
  for (const auto& [type, rate] : machine.flops_per_second)
    text += fmt::format("{} = {}\n", type, to_toml(rate));
  for (const CacheLevel& cache : machine.caches) text += "\n[[cache]]\n" + lines(cache, cache_keys);
  for (const NetworkLevel& level : machine.network)
    text += "\n[[network]]\n" + lines(level, network_keys);
  return text;
}

}  // namespace tessera
