// SPDX-License-Identifier: Apache-2.0
#include "results/stored_checks.hpp"

#include <tessera/base/text.hpp>
#include <tessera/mesh/mesh_shape.hpp>

#include "results/columns.hpp"

namespace tessera::bench {
namespace {

constexpr Size most_samples = 1'000'000'000'000'000;
constexpr Size most_attempts = 1'000'000;

// These check the type of a value that may be missing or null.
void check_text_if_known(const StoredDocument& value) {
  if (!value.is_unknown()) value.text();
}
void check_number_if_known(const StoredDocument& value) {
  if (!value.is_unknown()) value.number();
}
void check_losses_if_known(const StoredDocument& value) {
  if (!value.is_unknown()) value.check_numbers_or_null();
}

void check_factors(const StoredDocument& factors) {
  factors["strategy"].text();
  factors["mesh"].text();
  factors["ranks"].integer(1, most_ranks);
  factors["global_batch"].integer(1, most_samples);
  factors["microbatches"].integer(1, most_samples);
  if (const StoredDocument threads = factors["distributed.threads"]; !threads.is_missing())
    threads.positive();
}

void check_machine(const StoredDocument& machine) {
  for (const char* kernel : {"product_seconds", "memory_seconds"}) machine[kernel].positive();
}

void check_rounds(const StoredDocument& rounds) {
  for (const StoredDocument& round : rounds.list()) {
    round["launch"].text();
    round["at"].number();
    round["seconds"].positive();
    check_machine(round["machine"]);
  }
}

/// Checks the value that a column of the summary reads.
void check_column(const StoredDocument& result, const Column& column) {
  StoredDocument value = result;
  for (const std::string& key : split_text(std::string_view(column.from).substr(1), '/'))
    value = value[key];
  column.is_text ? check_text_if_known(value) : check_number_if_known(value);
}

}  // namespace

void check_study(const StoredDocument& study) {
  study["name"].text();
  if (!study["small"].is_unknown()) study["small"].truth();
  study["scaling"].text();
  if (const StoredDocument ranks = study["baseline"]["ranks"];
      ranks.is_missing() || !ranks.is_unknown())
    ranks.integer(1, most_ranks);
  study["baseline"]["strategy"].text();
  study["limits"]["case_seconds"].positive();
  for (const StoredDocument& point : study["cases"].list()) {
    point["id"].text();
    point["label"].text();
    check_factors(point["factors"]);
  }
}

void check_launch(const StoredDocument& launch) {
  const StoredDocument provenance = launch["provenance"];
  provenance.parts();
  check_text_if_known(provenance["git_revision"]);
  check_text_if_known(provenance["compiler"]);
  check_text_if_known(provenance["mpi"]["library"]);
  if (!provenance["git_dirty"].is_unknown()) provenance["git_dirty"].truth();
}

void check_result(const StoredDocument& result, const std::string& id) {
  if (result["id"].text() != id) result["id"].fail("must be the name of its directory, " + id);
  result["label"].text();
  const std::string status = result["status"].one_of(statuses);
  result["attempt"].integer(1, most_attempts);
  if (!result["launches"].is_unknown()) result["launches"].integer(0, most_attempts);
  check_text_if_known(result["started"]);
  check_factors(result["factors"]);
  for (const StoredDocument& section : result["config"].parts()) section.parts();
  for (const Column& column : columns)
    if (column.from != nullptr) check_column(result, column);
  check_losses_if_known(result["loss"]["epoch_losses"]);
  if (!result["rounds"].is_unknown()) check_rounds(result["rounds"]);
  if (status == "failed" || status == "timeout" || status == "oom")
    result["exit_code"].integer(1, 255);
  if (status != "ok" && status != "unverified") return;
  result["step_seconds"]["median"].positive();
  result["samples_per_second"].positive();
}

void check_steps(const StoredDocument& steps) {
  for (const StoredDocument& round : steps["rounds"].list()) round.check_numbers();
}

void check_reference(const StoredDocument& reference) {
  for (const char* how : {"alone", "together"})
    if (const StoredDocument lost = reference["lost"][how]; !lost.is_unknown())
      lost.integer(0, most_attempts);
  if (const StoredDocument steps = reference["asked_steps"]; !steps.is_unknown())
    steps.integer(0, most_samples);
  const StoredDocument losses = reference["losses"];
  if (losses.is_missing()) return;
  reference["ranks"].integer(1, most_ranks);
  losses["steps"].check_numbers_or_null();
  check_losses_if_known(losses["epochs"]);
  check_losses_if_known(losses["validations"]);
}

}  // namespace tessera::bench
