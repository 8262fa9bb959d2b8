// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/differences.hpp>
#include <tessera/checkpoint/hyperslabs.hpp>
#include <tessera/io/hdf5_file.hpp>

namespace tessera {
namespace {

/// Returns the number of the value among all values of its type in ascending order; 0 is zero.
template <class T>
std::int64_t rank_of(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  const Bits bits = std::bit_cast<Bits>(value);
  // Negative numbers are sign and magnitude.
  return bits < 0 ? -static_cast<std::int64_t>(bits & std::numeric_limits<Bits>::max()) : bits;
}

template <class T>
ArrayDifference compare(const Hdf5File& a, const Hdf5File& b, const ArrayFacts& facts) {
  const Size all = num_elements(facts.shape);
  const auto read = [&](const Hdf5File& file) {
    std::vector<T> values(static_cast<std::size_t>(all));
    file.read(facts.name, facts.type,
              hyperslabs_of({Shape(facts.shape.size(), 0), facts.shape}, {0, all}), values.data());
    return values;
  };
  const std::vector<T> left = read(a), right = read(b);
  ArrayDifference difference{facts.name, all};
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int64_t ranks = rank_of(left[i]) - rank_of(right[i]);
    if (ranks == 0) continue;
    ++difference.different;
    difference.most_ulps = std::max<Size>(difference.most_ulps, ranks < 0 ? -ranks : ranks);
  }
  return difference;
}

}  // namespace

std::vector<ArrayDifference> compare_checkpoints(const std::string& a, const std::string& b) {
  for (const std::string& path : {a, b}) read_state(path);
  const Hdf5File left = Hdf5File::open(a), right = Hdf5File::open(b);
  const std::vector<ArrayFacts> arrays = left.arrays(), others = right.arrays();
  const auto same = [](const ArrayFacts& x, const ArrayFacts& y) {
    return x.name == y.name && x.shape == y.shape && x.type == y.type;
  };
  if (!std::equal(arrays.begin(), arrays.end(), others.begin(), others.end(), same))
    throw Error(ExitCode::usage, "{} and {}: have different arrays", a, b);
  std::vector<ArrayDifference> differences;
  for (const ArrayFacts& facts : arrays) {
    if (facts.type != DType::float32 && facts.type != DType::float64) continue;
    const ArrayDifference one = facts.type == DType::float32 ? compare<float>(left, right, facts)
                                                             : compare<double>(left, right, facts);
    if (one.different > 0) differences.push_back(one);
  }
  return differences;
}

}  // namespace tessera
