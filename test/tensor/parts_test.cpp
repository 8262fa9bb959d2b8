// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <gtest/gtest.h>

#include <tessera/tensor/parts.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

std::vector<float> counting(Size n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.F);
  return values;
}

/// The expected packed memory, element by element.
std::vector<float> packed_reference(const Parts& parts) {
  std::vector<float> packed;
  for (Size p = 0; p < parts.count; ++p) {
    const Range range = balanced_split(parts.n, parts.count, p);
    for (Size o = 0; o < parts.outer; ++o) {
      for (Size i = range.begin * parts.inner; i < range.end() * parts.inner; ++i) {
        packed.push_back(static_cast<float>(o * parts.n * parts.inner + i));
      }
    }
  }
  return packed;
}

TEST(Parts, PackAndUnpackAreInverse) {
  for (const Shape& shape : {Shape{3, 7, 2}, Shape{1, 5, 3}, Shape{5, 1, 1}, Shape{4, 0, 3},
                             Shape{0, 4, 3}, Shape{2, 13, 5}}) {
    for (const int dim : {0, 1, 2}) {
      for (const Size count : {1, 2, 3, 8}) {
        const Parts parts(shape, dim, count);
        ASSERT_EQ(parts.elements(), num_elements(shape));
        const Vector<float> whole = to_device(counting(parts.elements()));
        const Vector<float> packed("packed", whole.extent(0));
        const Vector<float> again("again", whole.extent(0));
        pack(whole, parts, packed, parts.all());
        unpack(packed, parts, again, parts.all());
        EXPECT_EQ(to_host(packed), packed_reference(parts));
        EXPECT_EQ(to_host(again), to_host(whole));
      }
    }
  }
}

TEST(Parts, PackAndUnpackOnePart) {
  const Parts parts({3, 7, 2}, 1, 3);
  const Vector<float> whole = to_device(counting(parts.elements()));
  const Vector<float> rebuilt("rebuilt", whole.extent(0));
  for (Size p = 0; p < 3; ++p) {
    const Vector<float> piece("piece", parts.part_elements(p));
    pack(whole, parts, piece, {p, 1});
    unpack(piece, parts, rebuilt, {p, 1});
  }
  EXPECT_EQ(to_host(rebuilt), to_host(whole));
}

}  // namespace
}  // namespace tessera
