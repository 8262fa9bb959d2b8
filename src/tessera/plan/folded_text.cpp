// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include <tessera/base/types.hpp>
#include <tessera/plan/folded_text.hpp>

namespace tessera {
namespace {

constexpr std::size_t fewest_runs = 3;
constexpr std::size_t longest_run = 256;
constexpr char place_of_number = '\0';

/// A number, or a sequence of numbers with equal steps.
struct Number {
  Size first = 0, last = 0;
  bool is_one() const { return first == last; }
  Size span() const { return last - first; }
};

/// A text with its numbers taken out.
struct Item {
  std::string pattern{};
  std::vector<Number> numbers{};
};

Item item_of(const std::string& text) {
  Item item;
  for (std::size_t i = 0; i < text.size();) {
    Size number = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), number);
    if (error != std::errc{} || text[i] == '-') {
      item.pattern += text[i++];
      continue;
    }
    item.pattern += place_of_number;
    item.numbers.push_back({number, number});
    i = static_cast<std::size_t>(end - text.data());
  }
  return item;
}

std::string text_of(const Item& item) {
  std::string text;
  std::size_t next = 0;
  for (const char c : item.pattern) {
    if (c != place_of_number) {
      text += c;
      continue;
    }
    const Number number = item.numbers[next++];
    text += number.is_one() ? fmt::format("{}", number.first)
                            : fmt::format("{}..{}", number.first, number.last);
  }
  return text;
}

/// Returns true if an item continues the one `length` places before it, by the steps of the earlier
/// ones unless that is the first.
bool continues(const std::vector<Item>& items, std::size_t at, std::size_t length, bool is_first) {
  const Item &before = items[at - length], &after = items[at];
  if (before.pattern != after.pattern) return false;
  for (std::size_t n = 0; n < before.numbers.size(); ++n) {
    const Number a = before.numbers[n], b = after.numbers[n];
    const Size step = b.first - a.first;
    if (a.span() != b.span() || (step != 0 && !a.is_one())) return false;
    if (!is_first && a.first - items[at - 2 * length].numbers[n].first != step) return false;
  }
  return true;
}

/// Returns how many runs of `length` items follow one another from `begin` on.
std::size_t runs_at(const std::vector<Item>& items, std::size_t begin, std::size_t length) {
  std::size_t at = begin + length;
  while (at < items.size() && continues(items, at, length, at < begin + 2 * length)) ++at;
  return (at - begin) / length;
}

/// Returns the item that stands for `runs` runs.
Item fold(const std::vector<Item>& items, std::size_t begin, std::size_t length, std::size_t runs) {
  Item all;
  all.pattern = fmt::format("{} x [", runs);
  for (std::size_t i = 0; i < length; ++i) {
    const Item &first = items[begin + i], &last = items[begin + (runs - 1) * length + i];
    all.pattern += (i > 0 ? " " : "") + first.pattern;
    for (std::size_t n = 0; n < first.numbers.size(); ++n)
      all.numbers.push_back({first.numbers[n].first, last.numbers[n].last});
  }
  all.pattern += "]";
  return all;
}

/// Folds the runs of `length` items.
void fold_all(std::vector<Item>& items, std::size_t length) {
  std::vector<Item> shorter;
  for (std::size_t i = 0; i < items.size();) {
    const std::size_t runs = runs_at(items, i, length);
    if (runs < fewest_runs) {
      shorter.push_back(std::move(items[i++]));
    } else {
      shorter.push_back(fold(items, i, length, runs));
      i += runs * length;
    }
  }
  items = std::move(shorter);
}

}  // namespace

std::vector<std::string> folded(const std::vector<std::string>& texts) {
  std::vector<Item> items;
  for (const std::string& text : texts) items.push_back(item_of(text));
  // Short runs first: long ones consist of them.
  for (std::size_t length = 1; length <= std::min(longest_run, items.size() / fewest_runs);
       ++length)
    fold_all(items, length);
  std::vector<std::string> result;
  for (const Item& item : items) result.push_back(text_of(item));
  return result;
}

}  // namespace tessera
