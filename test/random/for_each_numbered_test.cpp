// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/random/for_each_numbered.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

struct StoreNumber {
  Vector<std::int64_t> to;
  KOKKOS_INLINE_FUNCTION void operator()(Size i, Size number) const { to(i) += number; }
};

TEST(ForEachNumbered, MeetsEachElementOnceWithItsNumber) {
  const std::vector<BlockRun> places{
      {},                     // a vector
      {0, 0, 7, 7, 3},        // whole rows, from the middle of one on
      {5, 2, 11, 4, 0},       // some columns
      {5, 2, 11, 4, 6},       // from the middle of a row on
      {1, 0, 1, 1, 2},        // one column
      {0, 3, 9999, 5000, 17}  // rows longer than a part
  };
  for (const BlockRun& place : places)
    for (const Size n : {0, 1, 2, 9, 4096, 4097, 13000}) {
      SCOPED_TRACE(testing::Message()
                   << n << " of columns " << place.block_cols << " from " << place.first << " on");
      const Vector<std::int64_t> numbers = allocate_zeros<std::int64_t>("numbers", n);
      for_each_numbered("test::numbers"_label, n, place, StoreNumber{numbers});
      const std::vector<std::int64_t> found = test::to_host(numbers);
      for (Size i = 0; i < n; ++i) ASSERT_EQ(found[i], place(i)) << i;
    }
}

}  // namespace
}  // namespace tessera
