// SPDX-License-Identifier: Apache-2.0
#include "study/study_keys.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

[[noreturn]] void reject(const std::string& key, const Json& value, const std::string& allowed) {
  throw ConfigError(key, to_toml(value), allowed);
}

void read(const std::string& key, const Json& value, std::string& out) {
  if (!value.is_string()) reject(key, value, "must be a string");
  out = value.get<std::string>();
}

void read(const std::string& key, const Json& value, Size& out, Size at_least) {
  if (!value.is_number_integer() || value.get<Size>() < at_least)
    reject(key, value, "must be an integer of at least " + std::to_string(at_least));
  out = value.get<Size>();
}

void read_positive(const std::string& key, const Json& value, double& out) {
  if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > 1e300)
    reject(key, value, "must be a positive number");
  out = value.get<double>();
}

void read(const std::string& key, const Json& value, Scaling& out) {
  if (value == "strong") {
    out = Scaling::strong;
  } else if (value == "weak") {
    out = Scaling::weak;
  } else {
    reject(key, value, "must be one of strong, weak");
  }
}

using Setter = std::function<void(Study&, const std::string& key, const Json& value)>;

const std::vector<std::pair<std::string, Setter>>& setters() {
  static const std::vector<std::pair<std::string, Setter>> all{
      {"study.name", [](Study& s, auto& k, auto& v) { read(k, v, s.name); }},
      {"study.description", [](Study& s, auto& k, auto& v) { read(k, v, s.description); }},
      {"study.scaling", [](Study& s, auto& k, auto& v) { read(k, v, s.scaling); }},
      {"study.seed",
       [](Study& s, auto& k, auto& v) {
         Size seed = 0;
         read(k, v, seed, 0);
         s.seed = static_cast<std::uint64_t>(seed);
       }},
      {"baseline.ranks",
       [](Study& s, auto& k, auto& v) { read(k, v, s.baseline.ranks.emplace(), 1); }},
      {"baseline.strategy", [](Study& s, auto& k, auto& v) { read(k, v, s.baseline.strategy); }},
      {"measure.warm_up", [](Study& s, auto& k, auto& v) { read(k, v, s.measure.warm_up, 0); }},
      {"measure.steps", [](Study& s, auto& k, auto& v) { read(k, v, s.measure.steps, 1); }},
      {"measure.max_steps", [](Study& s, auto& k, auto& v) { read(k, v, s.measure.max_steps, 1); }},
      {"measure.ci", [](Study& s, auto& k, auto& v) { read_positive(k, v, s.measure.ci); }},
      {"measure.instrumented_steps",
       [](Study& s, auto& k, auto& v) { read(k, v, s.measure.instrumented_steps, 1); }},
      {"measure.gemm_size", [](Study& s, auto& k, auto& v) { read(k, v, s.measure.gemm_size, 1); }},
      {"limits.case_seconds",
       [](Study& s, auto& k, auto& v) { read_positive(k, v, s.limits.case_seconds); }},
      {"limits.memory_bytes",
       [](Study& s, auto& k, auto& v) { read(k, v, s.limits.memory_bytes.emplace(), 1); }},
      {"limits.vendor_peak_flops_per_second",
       [](Study& s, auto& k, auto& v) {
         read_positive(k, v, s.limits.vendor_peak_flops_per_second.emplace());
       }},
      {"verify.tolerance", [](Study& s, auto& k, auto& v) { read_positive(k, v, s.tolerance); }},
  };
  return all;
}

/// {"distributed": {"overlap": [..]}} -> {"distributed.overlap": [..]}
void flatten(const Json& table, const std::string& prefix, std::map<std::string, Json>& out) {
  for (const auto& [key, value] : table.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", out);
    else
      out[prefix + key] = value;
  }
}

void check_factor(const std::string& where, const std::string& name, const Json& value) {
  std::vector<std::string> known = factor_names();
  for (const Setting& setting : settings()) known.push_back(setting.key);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const auto near = suggest_nearest(name, known);
  reject(where + "." + name, value,
         "is neither a factor (" + join(factor_names()) + ") nor a configuration key" +
             (near ? "; did you mean " + *near + "?" : ""));
}

std::map<std::string, Json> table_of(const std::string& key, const Json& table) {
  if (!table.is_object()) reject(key, table, "must be a table: [[" + key + "]]");
  std::map<std::string, Json> flat;
  flatten(table, "", flat);
  return flat;
}

std::vector<Json> values_of(const std::string& key, const Json& value) {
  if (!value.is_array()) return {value};
  if (value.empty()) reject(key, value, "must have at least one value");
  return value.get<std::vector<Json>>();
}

}  // namespace

const std::vector<std::string>& factor_names() {
  static const std::vector<std::string> names{"strategy",     "ranks",          "mesh",
                                              "meshes_over",  "global_batch",   "batch_per_rank",
                                              "microbatches", "mixed_precision"};
  return names;
}

std::vector<std::string> study_keys() {
  std::vector<std::string> keys{"study.base", "grid", "exclude"};
  for (const auto& [key, setter] : setters()) keys.push_back(key);
  return keys;
}

bool set_study_key(Study& study, const std::string& key, const Json& value) {
  for (const auto& [name, setter] : setters()) {
    if (name != key) continue;
    setter(study, key, value);
    return true;
  }
  return false;
}

Grid parse_grid(const std::string& key, const Json& table) {
  Grid grid;
  for (const auto& [name, value] : table_of(key, table)) {
    check_factor(key, name, value);
    // The axes belong together; every other list is one of alternatives.
    grid[name] = name == "meshes_over" ? std::vector<Json>{value} : values_of(key, value);
  }
  return grid;
}

Exclusion parse_exclusion(const std::string& key, const Json& table) {
  Exclusion exclusion;
  for (const auto& [name, value] : table_of(key, table)) {
    if (name == "reason") {
      read(key + ".reason", value, exclusion.reason);
    } else {
      check_factor(key, name, value);
      exclusion.where[name] = values_of(key, value);
    }
  }
  if (exclusion.reason.empty()) reject(key, table, "needs a reason");
  if (exclusion.where.empty())
    reject(key, table, "needs at least one factor, or it would exclude every case");
  return exclusion;
}

}  // namespace tessera::bench
