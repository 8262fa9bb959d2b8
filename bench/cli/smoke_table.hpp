// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/provenance.hpp>

#include "measure/measure.hpp"

namespace tessera::bench {

/// One line of the table. What does not apply is empty.
struct Row {
  std::string what;
  Size ranks = 1;
  std::string value;
  std::string min{};
  std::string mad{};
  std::string against{};  ///< what the value is held against: "goal 5 ms", "MPI 1.1 us"
  std::string ratio{};    ///< value / that
};

/// Times, held against a number of seconds unless `against` is empty.
Row time_row(const std::string& what, Size ranks, const Summary& seconds,
             const std::string& against = "", double against_seconds = 0);

/// Any other number, held against another one unless `against` is empty.
Row number_row(const std::string& what, Size ranks, double value, const std::string& unit,
               const std::string& against = "", double against_value = 0);

std::string table_text(const std::vector<Row>& rows);

/// What the numbers depend on: versions, BLAS kernels, and each rank's processors. `ranks`: the
/// documents of their RankProvenance.
std::string circumstances_text(const Provenance& provenance,
                               const std::vector<nlohmann::json>& ranks);

}  // namespace tessera::bench
