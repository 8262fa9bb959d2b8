// SPDX-License-Identifier: Apache-2.0
#include "cli/strategy_rows.hpp"

#include <memory>

#include <fmt/format.h>

#include "cli/step_case.hpp"

namespace tessera::bench {
namespace {

struct Variant {
  std::string name;
  std::string strategy;
  std::vector<Axis> mesh;
  bool overlap = false;
  bool prefetch = true;
};

/// The mesh of a strategy is all ranks along its own axis; hybrid has two replicas where both can
/// have several ranks.
std::vector<Variant> variants(Size n) {
  const std::vector<Axis> data{{"data", n}};
  const Size replicas = n % 2 == 0 && n > 2 ? 2 : 1;
  return {{"data", "data", data},
          {"zero1", "zero1", data},
          {"zero2", "zero2", data},
          {"fsdp", "fsdp", data},
          {"fsdp, no prefetch", "fsdp", data, false, false},
          {"fsdp, overlap", "fsdp", data, true},
          {"hybrid", "hybrid", {{"data", replicas}, {"fsdp", n / replicas}}},
          {"tensor", "tensor", {{"model", n}}}};
}

Config with_variant(Config config, const Variant& variant) {
  DistributedConfig& distributed = config.training.distributed;
  distributed.strategy = variant.strategy;
  distributed.mesh_axis_names.clear();
  distributed.mesh_shape.clear();
  for (const Axis& axis : variant.mesh) {
    distributed.mesh_axis_names.push_back(axis.name);
    distributed.mesh_shape.push_back(axis.size);
  }
  distributed.overlap = variant.overlap;
  distributed.prefetch = variant.prefetch;
  return config;
}

}  // namespace

void strategy_rows(const Config& config, const Communicator& ranks, const Repeats& repeats,
                   std::vector<Row>& rows) {
  if (ranks.size() == 1) return;
  const std::vector<Variant> all = variants(ranks.size());
  std::vector<std::unique_ptr<StepCase>> cases;
  std::vector<Work> works;
  for (const Variant& variant : all) {
    StepCase* one =
        cases.emplace_back(std::make_unique<StepCase>(with_variant(config, variant), ranks)).get();
    works.push_back(timed([one] { one->step(); }));
  }
  const std::vector<Summary> seconds = measure_in_turn(ranks, repeats, works);
  for (std::size_t i = 1; i < all.size(); ++i)
    rows.push_back(time_row("  " + all[i].name + " on " + MeshShape(all[i].mesh).to_string(),
                            ranks.size(), seconds[i], "data", seconds[0].median));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (const Size allocations = cases[i]->allocations_of_step(); allocations > 0)
      rows.push_back(number_row("  allocations in a warm step of " + all[i].name, ranks.size(),
                                static_cast<double>(allocations), "", "goal", 0));
}

}  // namespace tessera::bench
