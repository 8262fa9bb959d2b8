// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include <tessera/config/config_io.hpp>
#include <tessera/config/toml_text.hpp>

#include "study/case.hpp"

namespace tessera::bench {

std::string factor_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : to_toml(value);
}

/// FNV-1a, folded: a study has thousands of cases at most.
std::uint32_t hash_of(const nlohmann::json& document) {
  std::uint64_t h = 14695981039346656037u;
  for (const char c : document.dump()) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

void name_case(Case& point) {
  // Those that every case has come first.
  const std::vector<std::string> common{"strategy", "mesh", "global_batch", "microbatches"};
  point.label.clear();
  for (const std::string& key : common)
    point.label +=
        (point.label.empty() ? "" : " ") + key + "=" + factor_text(point.factors.at(key));
  for (const auto& [key, value] : point.factors.items())
    if (key.find('.') != std::string::npos) point.label += " " + key + "=" + factor_text(value);

  std::string shape;
  for (const Axis& axis : point.mesh.axes())
    shape += (shape.empty() ? "" : "x") + axis.name + std::to_string(axis.size);
  point.id =
      fmt::format("{}-{}-b{}", factor_text(point.factors.at("strategy")), shape, point.batch());
  if (point.config.training.microbatches > 1)
    point.id += fmt::format("-m{}", point.config.training.microbatches);
  point.id += fmt::format("-{:08x}", hash_of(config_as_json(point.config)));
}

}  // namespace tessera::bench
