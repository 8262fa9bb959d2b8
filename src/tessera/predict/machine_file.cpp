// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
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

constexpr std::array<std::string_view, 5> product_types{"float32", "float64", "bfloat16", "float16",
                                                        "tf32"};
constexpr std::array<std::string_view, 3> started_calls{"messages", "gradients", "gathers"};

/// A table of numbers in [machine], each with one of a few names.
struct NumberTable {
  std::string_view key;
  std::map<std::string, double> Machine::*numbers;
  std::string_view noun;
  std::span<const std::string_view> names;
  Bounds bounds;
  std::string_view meaning;
};
constexpr std::array<NumberTable, 3> number_tables{
    {{"machine.flops_per_second", &Machine::flops_per_second, "type", product_types, positive,
      "reached by the matrix products of a rank"},
     {"machine.peak_flops_per_second", &Machine::peak_flops_per_second, "type", product_types,
      positive, "stated by the vendor, for the MFU of the peak"},
     {"machine.overlap", &Machine::overlaps, "call", started_calls, fraction,
      "in place of the number `overlap`"}}};
constexpr std::string_view side_table = "machine.side_efficiency";
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
      {"machine.threads", &C::threads, "of a rank; 0: not told", not_negative},
      {"machine.thread_files", &C::thread_files,
       "files beside this one, for ranks of other numbers of threads"},
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
      {"machine.overlap", &C::overlap, "part of a non-blocking call that computation can hide",
       fraction},
  };
  return fields;
}

const Fields<Software>& software_fields() {
  using C = Software;
  static const Fields<C> fields{
      {"software.attention", &C::attention, "where its scores are"},
      {"software.stage_messages", &C::stage_messages, "of tensors that all ranks of model hold"},
      {"software.block_recomputation", &C::block_recomputation, "what is computed again"},
      {"software.loss_logits", &C::loss_logits, "that a cross-entropy reads"},
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
       "added to each message longer than 4 KiB", not_negative},
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

/// Sets side_efficiency by a key in the files of earlier versions: the side of products that reach
/// half of the rate (Hockney 1983).
void set_half_rate_side(Machine& machine, const std::string& key, const nlohmann::json& value) {
  double half_rate_side = 0;
  assign(key, value, half_rate_side);
  check_bounds(key, half_rate_side, not_negative);
  if (half_rate_side == 0) return;
  if (!machine.side_efficiency.empty()) reject(key, value, "must be 0 with [{}]", side_table);
  for (Size side = 1; side <= 1 << 16; side *= 2)
    machine.side_efficiency[side] = 1 / (1 + half_rate_side / static_cast<double>(side));
}

/// Appends the tables of [[name]] to `levels`.
template <class Level>
void add_levels(std::vector<Level>& levels, const Fields<Level>& fields, const std::string& name,
                const nlohmann::json& tables) {
  if (!tables.is_array()) reject(name, tables, "must be an array of tables: [[" + name + "]]");
  for (const nlohmann::json& table : tables) {
    Level& added = levels.emplace_back();
    for (const auto& [key, value] : table.items())
      if (name != "network" || key != "eager_bytes")  // 4 KiB in the files of earlier versions
        set(added, fields, name + "." + key, value);
  }
}

/// Sets an entry of one of the tables in [machine]; returns false if the key is none of them.
bool set_entry(Machine& machine, const std::string& key, const nlohmann::json& value) {
  const std::size_t dot = key.rfind('.');
  const std::string table = key.substr(0, dot), name = key.substr(dot + 1);
  const auto set_number = [&](double& number, const Bounds& bounds) {
    assign(key, value, number);
    check_bounds(key, number, bounds);
  };
  if (table == side_table) {
    const std::optional<Size> side = number_of<Size>(name);
    if (!side || *side < 1) reject(key, value, "the side must be a positive integer");
    set_number(machine.side_efficiency[*side], up_to(1));
    return true;
  }
  const auto found = std::ranges::find(number_tables, table, &NumberTable::key);
  if (found == number_tables.end()) return false;
  if (std::ranges::find(found->names, name) == found->names.end())
    reject(key, value, "the {} {}", found->noun, must_be_one_of(name, found->names));
  set_number((machine.*found->numbers)[name], found->bounds);
  return true;
}

/// `without`: a key that is left out.
template <class T>
std::string lines(const T& table, const Fields<T>& fields, std::string_view without = "") {
  std::string text;
  for (const Field<T>& field : fields) {
    if (field.key == without) continue;
    const std::string line =
        fmt::format("{} = {}", name_in_table(field.key), to_toml(field.get(table)));
    text +=
        field.meaning.empty() ? line + "\n" : fmt::format("{:<44} # {}\n", line, field.comment());
  }
  return text;
}

}  // namespace

nlohmann::json to_json(const Software& software) {
  nlohmann::json facts;
  for (const Field<Software>& field : software_fields())
    facts[name_in_table(field.key)] = field.get(software);
  return facts;
}

namespace {

/// Reads a file, but not those of its `thread_files`.
Machine load_one(const std::string& path) {
  Machine machine;
  machine.name = std::filesystem::path(path).stem().string();
  bool has_device = false;
  nlohmann::json half_rate_side = 0;
  for (const auto& [key, value] : parse_toml(read_text(path), path)) {
    has_device |= key == "machine.device";
    if (key == "network")
      add_levels(machine.network, network_fields(), key, value);
    else if (key == "cache")
      add_levels(machine.caches, cache_fields(), key, value);
    else if (key.starts_with("software."))
      set(machine.software, software_fields(), key, value);
    else if (key == "machine.half_rate_side")
      half_rate_side = value;
    else if (key == "machine.block_byte_seconds")  // in the files of earlier versions
      continue;
    else if (set_entry(machine, key, value))
      continue;
    else if (key.starts_with("machine."))
      set(machine, machine_fields(), key, value);
    else
      reject(key, value,
             "is not a known key; a machine file has [machine], [software], [[cache]] and "
             "[[network]]");
  }
  set_half_rate_side(machine, "machine.half_rate_side", half_rate_side);
  require(has_device, path, "machine.device, which is \"cpu\" or \"gpu\",");
  check_whole(machine, path);
  return machine;
}

}  // namespace

Machine load_machine(const std::string& path) {
  Machine machine = load_one(path);
  for (const std::string& file : machine.thread_files) {
    Machine other = load_one((std::filesystem::path(path).parent_path() / file).string());
    if (machine.threads == 0 || other.threads == 0 || machine.find_threads(other.threads))
      reject("machine.thread_files", file,
             "needs another machine.threads than the files before, all of them more than 0; they "
             "have {} and {}",
             machine.threads, other.threads);
    machine.others.push_back(std::move(other));
  }
  return machine;
}

std::string machine_as_toml(const Machine& machine) {
  std::string text = "[machine]\n" + lines(machine, machine_fields(),
                                           machine.overlaps.empty() ? "" : "machine.overlap");
  const auto add_table = [&](std::string_view key, const auto& numbers, std::string_view meaning) {
    if (!numbers.empty()) text += fmt::format("\n{:<44} # {}\n", fmt::format("[{}]", key), meaning);
    for (const auto& [name, number] : numbers)
      text += fmt::format("{} = {}\n", name, to_toml(number));
  };
  for (const NumberTable& table : number_tables)
    add_table(table.key, machine.*table.numbers, table.meaning);
  add_table(side_table, machine.side_efficiency, "by the harmonic mean of the sides of a product");
  if (machine.software != Software{})
    text += "\n[software]\n" + lines(machine.software, software_fields());
  for (const CacheLevel& cache : machine.caches)
    text += "\n[[cache]]\n" + lines(cache, cache_fields());
  for (const NetworkLevel& level : machine.network)
    text += "\n[[network]]\n" + lines(level, network_fields());
  return text;
}

}  // namespace tessera
