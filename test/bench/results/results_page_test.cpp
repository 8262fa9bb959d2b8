// SPDX-License-Identifier: Apache-2.0
// The tables of bench/RESULTS.md are those of the fields of each document.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/io/whole_file.hpp>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

/// Collects a row for each field of a type, and of the types in it that give meanings.
class FieldTable {
 public:
  explicit FieldTable(std::string prefix) : prefix_(std::move(prefix)) {}

  template <class T, class... Check>
  void operator()(const char* key, T&& value, const std::string& meaning = "", Check...) {
    rows += fmt::format("| `{}{}` | {} |\n", prefix_, key, meaning);
    has_meanings |= !meaning.empty();
    add_parts(prefix_ + key, value);
  }
  template <class T>
  void operator()(const Fields<T>& fields, const T&) {
    for (const Field<T>& field : fields)
      rows += fmt::format("| `{}{}` | {} |\n", prefix_, fmt::join(place_of(field.key), "."),
                          field.meaning);
  }

  std::string rows;
  bool has_meanings = false;

 private:
  template <class T>
  void add_parts(const std::string& place, const T&) {
    if constexpr (HasFields<T>) {
      FieldTable inner(place + ".");
      T sample{};
      T::fields(inner, sample);
      if (inner.has_meanings) rows += inner.rows;
    } else if constexpr (is_optional<T>) {
      add_parts(place, typename T::value_type{});
    } else if constexpr (is_vector<T>) {
      add_parts(place + "[]", typename T::value_type{});
    }
  }

  std::string prefix_;
};

template <class T>
std::string table_of() {
  FieldTable table("");
  T sample{};
  T::fields(table, sample);
  return "| key | meaning |\n|---|---|\n" + table.rows;
}

TEST(ResultsPage, HasTheFieldsOfEachDocument) {
  const auto page = std::filesystem::path(TESSERA_BENCH_README).replace_filename("RESULTS.md");
  const std::string text = read_text(page);
  for (const std::string& table :
       {table_of<StudyCases>(), table_of<Chosen>(), table_of<Begin>(), table_of<CaseResult>(),
        table_of<SummaryRow>(), table_of<MachineDrift>(), table_of<Comparison>(), cases_csv({})})
    EXPECT_NE(text.find("\n" + table), std::string::npos) << "the page lacks\n" << table;
}

}  // namespace
}  // namespace tessera::bench
