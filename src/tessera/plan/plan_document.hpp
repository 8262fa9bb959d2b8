// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/plan/layout/rank_classes.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/plan_text.hpp>

namespace tessera {

/// How a document lists ranks: RankClasses::number_ranges in files, RankClasses::describe in text.
using RanksText = std::string (RankClasses::*)(const RankClasses::Numbers&) const;

/// Returns the part of a plan that users see. to_json() is this document, and to_text() renders it.
nlohmann::json plan_document(const Plan& plan, const Topology& topology, PlanParts parts,
                             RanksText ranks_text);

/// Returns the bytes by part, and their sum as "total".
nlohmann::json memory_json(const MemoryPlan& memory);

}  // namespace tessera
