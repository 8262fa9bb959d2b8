// SPDX-License-Identifier: Apache-2.0
#include "results/case_result.hpp"

#include <tessera/base/text.hpp>

#include "results/columns.hpp"
#include "results/json_or_null.hpp"
#include "results/stored_checks.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json part_of(const StoredDocument& result, const char* key) {
  const StoredDocument part = result[key];
  return part.is_unknown() ? Json() : part.json();
}

std::string text_of(const StoredDocument& result, const char* key) {
  const StoredDocument text = result[key];
  return text.is_unknown() ? "" : text.text();
}

std::vector<Round> rounds_in(const StoredDocument& list) {
  std::vector<Round> rounds;
  if (list.is_unknown()) return rounds;
  for (const StoredDocument& round : list.list())
    rounds.push_back({round["launch"].text(),
                      round["at"].number(),
                      round["seconds"].positive(),
                      {round["machine"]["product_seconds"].positive(),
                       round["machine"]["memory_seconds"].positive()}});
  return rounds;
}

/// Checks the value that a column of the summary reads.
void check_column(const StoredDocument& result, const Column& column) {
  StoredDocument value = result;
  for (const std::string& key : split_text(std::string_view(column.from).substr(1), '/'))
    value = value[key];
  if (value.is_unknown()) return;
  column.is_text ? void(value.text()) : void(value.number());
}

}  // namespace

bool is_measured(std::string_view status) { return status == "ok" || status == "unverified"; }

bool CaseResult::is_measured() const { return bench::is_measured(status); }

void to_json(Json& json, const CaseResult& r) {
  json = {{"schema_version", 1},
          {"id", r.id},
          {"study", r.study},
          {"label", r.label},
          {"factors", r.factors},
          {"case", r.facts},
          {"config", r.config},
          {"status", r.status},
          {"reason", json_or_null(r.reason)},
          {"exit_code", json_or_null(r.exit_code)},
          {"attempt", r.attempt > 0 ? Json(r.attempt) : Json()},
          {"launches", json_or_null(r.launches)},
          {"launch", json_or_null(r.launch)},
          {"simulated", json_or_null(r.simulated)},
          {"started", json_or_null(r.started)},
          {"finished", json_or_null(r.finished)},
          {"wall_seconds", json_or_null(r.wall_seconds)},
          {"loss", r.loss},
          {"rounds", r.rounds.empty() ? Json() : Json(r.rounds)},
          {"step_seconds", r.step_seconds},
          {"samples_per_second", json_or_null(r.samples_per_second)},
          {"breakdown", r.breakdown},
          {"traffic", r.traffic},
          {"memory", r.memory},
          {"pipeline", r.pipeline},
          {"compute", r.compute},
          {"prediction", r.prediction},
          {"explanation", r.explanation},
          {"checkpoint", r.checkpoint}};
}

CaseResult read_case_result(const StoredDocument& document, const std::string& id) {
  constexpr Size most_attempts = 1'000'000;
  CaseResult r;
  r.id = document["id"].text();
  if (r.id != id) document["id"].fail("must be the name of its directory, " + id);
  r.study = text_of(document, "study");
  r.label = document["label"].text();
  check_factors(document["factors"]);
  r.factors = document["factors"].json();
  for (const StoredDocument& section : document["config"].parts()) section.parts();
  r.config = document["config"].json();
  r.facts = part_of(document, "case");

  r.status = document["status"].one_of(statuses);
  r.reason = text_of(document, "reason");
  const bool has_failed = r.status == "failed" || r.status == "timeout" || r.status == "oom";
  if (has_failed || !document["exit_code"].is_unknown())
    r.exit_code = static_cast<int>(document["exit_code"].integer(has_failed ? 1 : 0, 255));
  r.attempt = document["attempt"].integer(1, most_attempts);
  if (const StoredDocument launches = document["launches"]; !launches.is_unknown())
    r.launches = launches.integer(0, most_attempts);
  r.launch = text_of(document, "launch");
  r.simulated = text_of(document, "simulated");
  r.started = text_of(document, "started");
  r.finished = text_of(document, "finished");
  if (const StoredDocument seconds = document["wall_seconds"]; !seconds.is_unknown())
    r.wall_seconds = seconds.number();

  for (const Column& column : columns)
    if (column.from != nullptr) check_column(document, column);
  if (const StoredDocument losses = document["loss"]["epoch_losses"]; !losses.is_unknown())
    losses.check_numbers_or_null();
  if (const StoredDocument oom = document["memory"]["predicted_oom"]; !oom.is_unknown())
    oom.truth();
  r.loss = part_of(document, "loss");
  r.breakdown = part_of(document, "breakdown");
  r.traffic = part_of(document, "traffic");
  r.memory = part_of(document, "memory");
  r.pipeline = part_of(document, "pipeline");
  r.compute = part_of(document, "compute");
  r.prediction = part_of(document, "prediction");
  r.explanation = part_of(document, "explanation");
  r.checkpoint = part_of(document, "checkpoint");
  r.rounds = rounds_in(document["rounds"]);
  r.step_seconds = part_of(document, "step_seconds");
  if (const StoredDocument rate = document["samples_per_second"]; !rate.is_unknown())
    r.samples_per_second = rate.number();
  if (r.is_measured()) {
    document["step_seconds"]["median"].positive();
    document["samples_per_second"].positive();
  }
  return r;
}

}  // namespace tessera::bench
