// SPDX-License-Identifier: Apache-2.0
#include "results/stored_checks.hpp"

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera::bench {
namespace {

constexpr Size most_samples = 1'000'000'000'000'000;

void check_text_if_known(const StoredDocument& value) {
  if (!value.is_unknown()) value.text();
}

}  // namespace

void check_factors(const StoredDocument& factors) {
  factors["strategy"].text();
  factors["mesh"].text();
  factors["ranks"].integer(1, most_ranks);
  factors["global_batch"].integer(1, most_samples);
  factors["microbatches"].integer(1, most_samples);
  if (const StoredDocument threads = factors["distributed.threads"]; !threads.is_missing())
    threads.positive();
}

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

void check_steps(const StoredDocument& steps) {
  for (const StoredDocument& round : steps["rounds"].list()) round.check_numbers();
}

}  // namespace tessera::bench
