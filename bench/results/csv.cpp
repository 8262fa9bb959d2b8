// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <fmt/format.h>

#include "results/columns.hpp"
#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// RFC 4180; unknown values are empty.
std::string field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.9g}", value.get<double>());
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '"');
  return fmt::format("\"{}\"", text);
}

}  // namespace

std::string cases_csv(const Json& summary) {
  std::string text;
  for (const Column& column : columns) text.append(text.empty() ? "" : ",").append(column.key);
  for (const Json& row : summary.at("cases"))
    for (const Column& column : columns)
      text.append(&column == columns ? "\n" : ",").append(field(row.at(column.key)));
  return text.append("\n");
}

std::string steps_csv(const Results& results) {
  std::string text = "id,attempt,round,step,seconds\n";
  for (const CaseResult& result : results.cases) {
    const auto found = results.steps.find(result.id);
    if (found == results.steps.end()) continue;
    for (std::size_t round = 0; round < found->second.size(); ++round)
      for (std::size_t step = 0; step < found->second[round].size(); ++step)
        text += fmt::format("{},{},{},{},{:.9g}\n", found->first, result.attempt, round, step,
                            found->second[round][step]);
  }
  return text;
}

}  // namespace tessera::bench
