// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// Letters to insert, delete, replace or swap with their neighbour to turn `a` into `b`
/// (optimal string alignment distance), without regard to case.
Size edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` most likely misspells; none if all are too far off (more than a third
/// of the longer word), or longer than names are. The first of equally near candidates wins.
std::optional<std::string> suggest_nearest(std::string_view word,
                                           std::span<const std::string> candidates);
std::optional<std::string> suggest_nearest(std::string_view word,
                                           std::span<const std::string_view> candidates);

/// "must be one of mean, sum", with the nearest of the names when `wrong` looks like one.
std::string must_be_one_of(std::string_view wrong, std::span<const std::string_view> names);

/// Whole lines that show how to call a command.
struct CommandExamples {
  std::string_view command, lines;
};
/// What ends a help text: the examples of `command`, or all of them where it is empty, and `note`.
std::string help_footer(std::span<const CommandExamples> examples, std::string_view command,
                        std::string_view note);

std::string join(std::span<const std::string> parts, std::string_view separator = ", ");
std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

/// The parts between separators, empty ones included: "a,,b" has three; "" has one, empty.
std::vector<std::string> split_text(std::string_view text, char separator);

/// Without white space at either end.
std::string_view trim(std::string_view text);

/// "385 B", "1.50 KiB", "2.00 GiB": powers of 1024, two decimals from a KiB on.
std::string human_bytes(Size bytes);

/// "1,234,567".
std::string with_thousands(Size n);

/// "850 ns", "12.3 us", "4.56 ms", "1.23 s": three significant digits.
std::string human_seconds(double seconds);

/// "1 rank", "3 ranks".
std::string counted(Size n, std::string_view noun);

/// Sorted numbers as ranges: {0, 1, 2, 5} is "0-2,5"; "" when there are none. Runs of fewer than
/// `shortest` numbers are written out.
std::string number_ranges(std::span<const int> sorted, std::size_t shortest = 2);

/// "rank 2", "ranks 0-3,7". Ranks ascend.
std::string rank_list(std::span<const int> ranks);

/// Who says what, given the text of each rank: ranks with the same text together, by the lowest.
/// Pairs of rank_list() and text.
std::vector<std::pair<std::string, std::string>> ranks_by_text(
    const std::map<int, std::string>& texts);

/// One line from any text: line breaks and other control characters become single spaces.
std::string one_line(std::string_view text);

}  // namespace tessera
