// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// Returns the optimal string alignment distance of `a` and `b`, ignoring case: the number of
/// letters to insert, delete, replace, or swap with a neighbour.
Size edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate nearest to `word`, the first one of equally near candidates. Returns
/// nothing if all distances exceed a third of the longer word, or if the words are longer than 256
/// letters.
std::optional<std::string> suggest_nearest(std::string_view word,
                                           std::span<const std::string> candidates);
std::optional<std::string> suggest_nearest(std::string_view word,
                                           std::span<const std::string_view> candidates);

/// Returns "must be one of mean, sum", and the nearest name if `wrong` is similar to one.
std::string must_be_one_of(std::string_view wrong, std::span<const std::string_view> names);

/// Lines that show how to call a command.
struct CommandExamples {
  std::string_view command, lines;
};
/// Returns the end of a help text: the examples of `command`, or all if it is empty, and `note`.
std::string help_footer(std::span<const CommandExamples> examples, std::string_view command,
                        std::string_view note);

std::string join(std::span<const std::string> parts, std::string_view separator = ", ");
std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

/// Returns the parts between separators, including empty ones: "a,,b" has three, "" has one.
std::vector<std::string> split_text(std::string_view text, char separator);

/// Returns the number if the whole text is one, without a sign "+" or spaces.
template <class T>
std::optional<T> number_of(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Returns the text without white space at either end.
std::string_view trim(std::string_view text);

/// Returns "385 B", "1.50 KiB" or "2.00 GiB": powers of 1024, with two decimals from 1 KiB on.
std::string human_bytes(Size bytes);

/// "1,234,567".
std::string with_thousands(Size n);

/// Returns "850 ns", "12.3 us", "4.56 ms" or "1.23 s", with three significant digits.
std::string human_seconds(double seconds);

/// Returns a rate such as "41.3 GFLOP/s".
std::string human_flops(double flops_per_second);

/// "1 rank", "3 ranks".
std::string counted(Size n, std::string_view noun);

/// Returns sorted numbers as ranges: "0-2,5" for {0, 1, 2, 5}. Writes out runs of fewer than
/// `shortest` numbers.
std::string number_ranges(std::span<const int> sorted, std::size_t shortest = 2);

/// Returns "rank 2" or "ranks 0-3,7" for sorted ranks.
std::string rank_list(std::span<const int> ranks);

/// Groups ranks with the same text, in the order of their lowest rank. Returns pairs of rank_list()
/// and text.
std::vector<std::pair<std::string, std::string>> ranks_by_text(
    const std::map<int, std::string>& texts);

/// Returns the text in one line: control characters, such as line breaks, become single spaces.
std::string one_line(std::string_view text);

}  // namespace tessera
