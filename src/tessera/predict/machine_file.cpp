// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/fields.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/toml_text.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/predict/machine_file.hpp>

namespace tessera {
namespace {

constexpr std::string_view rates = "machine.flops_per_second.";
constexpr std::array<std::string_view, 5> product_types{"float32", "float64", "bfloat16", "float16",
                                                        "tf32"};
constexpr std::array<std::string_view, 2> emulated_types{"bfloat16", "float16"};

void check_emulated(const Machine& machine) {
  for (const std::string& type : machine.emulated_products)
    if (std::ranges::find(emulated_types, type) == emulated_types.end())
      reject("machine.emulated_products", type, "the type " + must_be_one_of(type, emulated_types));
}

const Fields<Machine>& machine_fields() {
  using C = Machine;
  static const Fields<C> fields{
      {"machine.name", &C::name, ""},
      {"machine.device", &C::device, "of a rank"},
      {"machine.emulated_products", &C::emulated_products,
       "16-bit types that products widen to float32",
       Rule<C>{[](const C& c) { return check_emulated(c), std::string(); }, When::alone}},
      {"machine.memory_bytes", &C::memory_bytes, "of a rank", positive},
      {"machine.memory_bytes_per_second", &C::memory_bytes_per_second,
       "reached by the kernels of a rank", positive},
      {"machine.kernel_seconds", &C::kernel_seconds, "overhead of each kernel", not_negative},
      {"machine.function_seconds", &C::function_seconds,
       "of an exponential function in a long loop", not_negative},
      {"machine.product_overlap", &C::product_overlap,
       "part of the memory traffic of products that arithmetic hides", fraction},
      {"machine.half_rate_side", &C::half_rate_side,
       "shortest side of products that reach half of their rate", not_negative},
      {"machine.block_byte_seconds", &C::block_byte_seconds,
       "added to products of blocks of wider matrices, for each byte of them", not_negative},
      {"machine.overlap", &C::overlap, "part of a non-blocking call that computation can hide",
       fraction},
  };
  return fields;
}

const Fields<CacheLevel>& cache_fields() {
  using C = CacheLevel;
  static const Fields<C> fields{
      {"cache.bytes", &C::bytes, "of a rank", positive},
      {"cache.bytes_per_second", &C::bytes_per_second,
       "reached by the kernels of a rank whose step uses no more than `bytes`", positive},
  };
  return fields;
}

const Fields<NetworkLevel>& network_fields() {
  using C = NetworkLevel;
  static const Fields<C> fields{
      {"network.name", &C::name, ""},
      {"network.ranks", &C::ranks, "ranks that this level connects", positive},
      {"network.latency_seconds", &C::latency_seconds, "of a message", not_negative},
      {"network.rendezvous_seconds", &C::rendezvous_seconds,
       "added to each message longer than eager_bytes", not_negative},
      {"network.eager_bytes", &C::eager_bytes, "", not_negative},
      {"network.bytes_per_second", &C::bytes_per_second,
       "in each direction, out of a rank or out of a group of the inner level", positive},
  };
  return fields;
}

std::string name_in_table(const std::string& key) { return key.substr(key.find('.') + 1); }

template <class T>
void set(T& table, const Fields<T>& fields, const std::string& key, const nlohmann::json& value) {
  std::vector<std::string> names;
  for (const Field<T>& field : fields) {
    names.push_back(name_in_table(field.key));
    if (field.key != key) continue;
    field.set(table, value);
    return field.check(table, true);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  reject(key, value, "is not a known key; the key " + must_be_one_of(name_in_table(key), known));
}

/// Throws Error (usage) if a required key is missing.
void require(bool is_given, const std::string& path, std::string_view key) {
  if (!is_given) throw Error(ExitCode::usage, "{}: {} is missing", path, key);
}

/// Requires the keys whose default, 0, is not allowed.
template <class T>
void require_all(const T& table, const Fields<T>& fields, const std::string& path) {
  for (const Field<T>& field : fields)
    require(!(field.bounds.above && field.get(table) == 0), path, field.key);
}

/// Checks that all required keys are there, that caches grow and that levels are nested. Latencies
/// and overheads are optional.
void check_whole(const Machine& machine, const std::string& path) {
  require(!machine.flops_per_second.empty(), path, "[machine.flops_per_second]");
  require_all(machine, machine_fields(), path);
  require(!machine.network.empty(), path, "[[network]]");
  Size smaller = 0;
  for (const CacheLevel& cache : machine.caches) {
    require_all(cache, cache_fields(), path);
    if (cache.bytes <= smaller)
      reject("cache.bytes", cache.bytes, "must be more than the {} bytes of the cache before",
             smaller);
    smaller = cache.bytes;
  }
  Size inner = 1;
  for (const NetworkLevel& level : machine.network) {
    require_all(level, network_fields(), path);
    if (level.ranks % inner != 0 || (level.ranks == inner && inner > 1))
      reject("network.ranks", level.ranks, "must be a multiple of the {} ranks of the inner level",
             inner);
    inner = level.ranks;
  }
}

/// Appends the tables of [[name]] to `levels`.
template <class Level>
void add_levels(std::vector<Level>& levels, const Fields<Level>& fields, const std::string& name,
                const nlohmann::json& tables) {
  if (!tables.is_array()) reject(name, tables, "must be an array of tables: [[" + name + "]]");
  for (const nlohmann::json& table : tables) {
    Level& added = levels.emplace_back();
    for (const auto& [key, value] : table.items()) set(added, fields, name + "." + key, value);
  }
}

void set_rate(Machine& machine, const std::string& key, const nlohmann::json& value) {
  const std::string type = key.substr(rates.size());
  if (std::find(product_types.begin(), product_types.end(), type) == product_types.end())
    reject(key, value, "the type " + must_be_one_of(type, product_types));
  assign(key, value, machine.flops_per_second[type]);
  check_bounds(key, machine.flops_per_second[type], positive);
}

template <class T>
std::string lines(const T& table, const Fields<T>& fields) {
  std::string text;
  for (const Field<T>& field : fields) {
    const std::string line =
        fmt::format("{} = {}", name_in_table(field.key), to_toml(field.get(table)));
    text +=
        field.meaning.empty() ? line + "\n" : fmt::format("{:<44} # {}\n", line, field.comment());
  }
  return text;
}

}  // namespace

Machine load_machine(const std::string& path) {
  Machine machine;
  machine.name = std::filesystem::path(path).stem().string();
  bool has_device = false;
  for (const auto& [key, value] : parse_toml(read_text(path), path)) {
    has_device |= key == "machine.device";
    if (key == "network")
      add_levels(machine.network, network_fields(), key, value);
    else if (key == "cache")
      add_levels(machine.caches, cache_fields(), key, value);
    else if (key.starts_with(rates))
      set_rate(machine, key, value);
    else if (key.starts_with("machine."))
      set(machine, machine_fields(), key, value);
    else
      reject(key, value,
             "is not a known key; a machine file has [machine], [[cache]] and [[network]]");
  }
  require(has_device, path, "machine.device, which is \"cpu\" or \"gpu\",");
  check_whole(machine, path);
  return machine;
}

std::string machine_as_toml(const Machine& machine) {
  std::string text = "[machine]\n" + lines(machine, machine_fields());
  text +=
      "\n[machine.flops_per_second]                  # reached by the matrix products of a rank\n";
  for (const auto& [type, rate] : machine.flops_per_second)
    text += fmt::format("{} = {}\n", type, to_toml(rate));
  for (const CacheLevel& cache : machine.caches)
    text += "\n[[cache]]\n" + lines(cache, cache_fields());
  for (const NetworkLevel& level : machine.network)
    text += "\n[[network]]\n" + lines(level, network_fields());
  return text;
}

}  // namespace tessera
