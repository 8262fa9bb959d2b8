// SPDX-License-Identifier: Apache-2.0
#include "results/reference.hpp"

#include <cmath>

#include <tessera/mesh/mesh_shape.hpp>

#include "results/documents.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

std::vector<double> numbers_in(const Json& list) {
  std::vector<double> numbers;
  for (const Json& one : list) numbers.push_back(one.is_null() ? NAN : one.get<double>());
  return numbers;
}

}  // namespace

void to_json(Json& json, const LossCurve& losses) {
  json = {{"steps", numbers_json(losses.steps)},
          {"epochs", numbers_json(losses.epochs)},
          {"validations", numbers_json(losses.validations)}};
}

void from_json(const Json& json, LossCurve& losses) {
  losses.steps = numbers_in(json.at("steps"));
  losses.epochs = numbers_in(json.value("epochs", Json()));
  losses.validations = numbers_in(json.value("validations", Json()));
}

void to_json(Json& json, const Reference& r) {
  json = {{"schema_version", 1}};
  if (r.lost > 0) json["lost"] = r.lost;
  if (!r.losses) return;
  json["losses"] = *r.losses;
  json["ranks"] = r.ranks;
  json["strategy"] = r.strategy;
  json["microbatches"] = r.microbatches;
  json["asked_steps"] = r.asked_steps ? Json(*r.asked_steps) : Json();
  json["trials"] = r.trials;
  json["seconds"] = r.seconds;
}

Reference read_reference(const StoredDocument& document) {
  constexpr Size most = 1'000'000'000'000'000;
  Reference r;
  if (const StoredDocument lost = document["lost"]; !lost.is_unknown())
    r.lost = lost.integer(0, most);
  if (const StoredDocument steps = document["asked_steps"]; !steps.is_unknown())
    r.asked_steps = steps.integer(0, most);
  const StoredDocument losses = document["losses"];
  if (losses.is_missing()) return r;
  losses["steps"].check_numbers_or_null();
  for (const char* others : {"epochs", "validations"})
    if (!losses[others].is_unknown()) losses[others].check_numbers_or_null();
  r.losses = losses.json().get<LossCurve>();
  r.ranks = document["ranks"].integer(1, most_ranks);
  if (!document["strategy"].is_unknown()) r.strategy = document["strategy"].text();
  if (const StoredDocument microbatches = document["microbatches"]; !microbatches.is_unknown())
    r.microbatches = microbatches.integer(1, most);
  if (!document["trials"].is_unknown()) r.trials = document["trials"].json();
  if (!document["seconds"].is_unknown()) r.seconds = document["seconds"].number();
  return r;
}

}  // namespace tessera::bench
