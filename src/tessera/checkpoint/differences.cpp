// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/differences.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {
namespace {

constexpr auto most_size = static_cast<std::uint64_t>(std::numeric_limits<Size>::max());

/// Returns a number that grows with the value, by 1 from one value of the type to the next.
template <class T>
std::uint64_t rank_of(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
  const Bits bits = std::bit_cast<Bits>(value);
  return bits & sign ? sign - (bits & ~sign) : sign + bits;
}

template <class T>
ArrayDifference compare(const CheckpointFile& a, const CheckpointFile& b, const std::string& name) {
  const Size all = num_elements(a.tensors().at(name).array.shape);
  const auto read = [&](const CheckpointFile& file) {
    std::vector<T> values(static_cast<std::size_t>(all));
    file.read(file.tensors().at(name), 0, all, values.data());
    return values;
  };
  const std::vector<T> left = read(a), right = read(b);
  ArrayDifference difference{name, all};
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (std::memcmp(&left[i], &right[i], sizeof(T)) == 0) continue;
    const std::uint64_t x = rank_of(left[i]), y = rank_of(right[i]);
    const std::uint64_t ulps = std::min<std::uint64_t>(x > y ? x - y : y - x, most_size);
    ++difference.different;
    difference.most_ulps = std::max(difference.most_ulps, static_cast<Size>(ulps));
  }
  return difference;
}

std::string text_of(const StoredTensor& tensor) {
  return fmt::format("{} {}", name_of(tensor.type), to_string(tensor.array.shape));
}

/// Returns a phrase about each array that is in one file only, or has another shape or type.
std::vector<std::string> different_facts(const std::string& a, const CheckpointFile& left,
                                         const std::string& b, const CheckpointFile& right) {
  std::map<std::string, std::pair<std::string, std::string>> texts;
  for (const auto& [name, tensor] : left.tensors()) texts[name].first = text_of(tensor);
  for (const auto& [name, tensor] : right.tensors()) texts[name].second = text_of(tensor);
  std::vector<std::string> phrases;
  for (const auto& [name, text] : texts) {
    const auto& [in_a, in_b] = text;
    if (in_a == in_b) continue;
    if (in_a.empty() || in_b.empty())
      phrases.push_back(fmt::format("{} is in {} only", name, in_b.empty() ? a : b));
    else
      phrases.push_back(fmt::format("{} is {} and {}", name, in_a, in_b));
  }
  return phrases;
}

}  // namespace

std::vector<ArrayDifference> compare_checkpoints(const std::string& a, const std::string& b) {
  const CheckpointFile left(a), right(b);
  if (const auto other = different_facts(a, left, b, right); !other.empty()) {
    constexpr std::ptrdiff_t most = 8;
    const auto shown =
        std::vector(other.begin(), other.begin() + std::min(most, std::ssize(other)));
    throw Error(ExitCode::usage, "{} and {}: have different arrays: {}{}", a, b, join(shown, "; "),
                shown.size() < other.size() ? "; ..." : "");
  }
  std::vector<ArrayDifference> differences;
  for (const auto& [name, tensor] : left.tensors()) {
    const ArrayDifference one = tensor.type == DType::float64 ? compare<double>(left, right, name)
                                                              : compare<float>(left, right, name);
    if (one.different > 0) differences.push_back(one);
  }
  return differences;
}

}  // namespace tessera
