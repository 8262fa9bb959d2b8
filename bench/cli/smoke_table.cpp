// SPDX-License-Identifier: Apache-2.0
#include "cli/smoke_table.hpp"

#include <cstdlib>
#include <iterator>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

namespace tessera::bench {
namespace {

constexpr const char* line_format = "{:<42} {:>5} {:>12} {:>9} {:>6}  {:<17} {:>5}\n";

std::string ratio_text(double value, double against) {
  return fmt::format("{:.2f}", value / against);
}

std::string number_text(double value) {
  return fmt::format("{:.{}f}", value,
                     value == static_cast<double>(static_cast<Size>(value)) ? 0 : 1);
}

}  // namespace

Row time_row(const std::string& what, Size ranks, const Summary& seconds,
             const std::string& against, double against_seconds) {
  Row row{what, ranks, human_seconds(seconds.median), human_seconds(seconds.min),
          fmt::format("{:.1f}%", 100 * seconds.mad / seconds.median)};
  if (against.empty()) return row;
  row.against = against + " " + human_seconds(against_seconds);
  row.ratio = ratio_text(seconds.median, against_seconds);
  return row;
}

Row number_row(const std::string& what, Size ranks, double value, const std::string& unit,
               const std::string& against, double against_value) {
  const auto with_unit = [&](double number) {
    return number_text(number) + (unit.empty() ? "" : " " + unit);
  };
  Row row{what, ranks, with_unit(value)};
  if (against.empty()) return row;
  row.against = against + " " + with_unit(against_value);
  if (against_value != 0) row.ratio = ratio_text(value, against_value);
  return row;
}

std::string table_text(const std::vector<Row>& rows) {
  std::string text =
      fmt::format(line_format, "", "ranks", "median", "min", "MAD", "against", "ratio");
  text += std::string(text.size() - 1, '-') + "\n";
  for (const Row& row : rows)
    fmt::format_to(std::back_inserter(text), line_format, row.what, row.ranks, row.value, row.min,
                   row.mad, row.against, row.ratio);
  return text;
}

std::string circumstances_text(const Provenance& provenance,
                               const std::vector<nlohmann::json>& ranks) {
  std::string text = fmt::format(
      "Tessera {} ({}{}), {}, {}\nKokkos {} {}, Kokkos Kernels {}\n{}\n{}\n", provenance.version,
      provenance.git_revision, provenance.git_dirty ? ", modified" : "", provenance.build_type,
      provenance.compiler, provenance.kokkos_version, provenance.kokkos_backend,
      provenance.kokkos_kernels_version, provenance.mpi_library, provenance.blas);
  for (const nlohmann::json& rank : ranks) {
    const auto get = [&](const char* key) { return rank.at(key).get<std::string>(); };
    fmt::format_to(std::back_inserter(text), "rank {} on {}: {}, processors {}{}\n",
                   rank.at("rank").get<int>(), get("host"), get("cpu_model"), get("cpu_set"),
                   rank.at("gpu").is_null() ? "" : ", GPU " + get("gpu"));
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1)
    fmt::format_to(std::back_inserter(text), "load of the machine before: {:.1f}\n", load);
  return text;
}

}  // namespace tessera::bench
