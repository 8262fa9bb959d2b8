// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/config_io.hpp>

#include "study/study.hpp"

namespace tessera::bench {

namespace {

std::string text_of(const std::string& key, const nlohmann::json& value) {
  return key + "=" + (value.is_string() ? value.get<std::string>() : to_toml(value));
}

}  // namespace

std::vector<std::string> other_factors(const nlohmann::json& factors) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : factors.items())
    if (key.find('.') != std::string::npos) texts.push_back(text_of(key, value));
  return texts;
}

/// FNV-1a, folded: a study has thousands of cases at most.
std::uint32_t hash_of(const nlohmann::json& document) {
  std::uint64_t h = 14695981039346656037u;
  // A path need not be UTF-8.
  for (const char c : document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

void name_case(Case& point) {
  std::vector<std::string> parts = other_factors(point.factors);
  // The factors of every case come first.
  for (const char* key : {"microbatches", "global_batch", "mesh", "strategy"})
    parts.insert(parts.begin(), text_of(key, point.factors.at(key)));
  point.label = join(parts, " ");

  std::string shape;
  for (const Axis& axis : point.mesh.axes())
    shape += (shape.empty() ? "" : "x") + axis.name + std::to_string(axis.size);
  point.id = fmt::format("{}-{}-b{}", point.factors.at("strategy").get<std::string>(), shape,
                         point.batch());
  if (point.config.training.microbatches > 1)
    point.id += fmt::format("-m{}", point.config.training.microbatches);
  point.id += fmt::format("-{:08x}", hash_of(config_as_json(point.config)));
}

}  // namespace tessera::bench
