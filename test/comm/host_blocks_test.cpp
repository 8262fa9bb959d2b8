// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gtest/gtest.h>

#include <tessera/comm/detail/host_blocks.hpp>

#include "comm/mpi_spy.hpp"

namespace tessera {
namespace {

using test::MpiSpy;

TEST(HostBlockPool, LendsTheSmallestBlockThatIsLargeEnough) {
  HostBlockPool pool;
  HostBlock small = pool.take(100, Site::current()), large = pool.take(1000, Site::current());
  char* const at_small = small.data();
  char* const at_large = large.data();
  EXPECT_NE(at_small, at_large);
  pool.give_back(std::move(large));
  pool.give_back(std::move(small));
  MpiSpy::reset();
  EXPECT_EQ(pool.take(50, Site::current()).data(), at_small)
      << "and frees it at the end of this line";
  small = pool.take(100, Site::current());
  EXPECT_EQ(small.data(), at_large);
  EXPECT_EQ(small.bytes(), 1000);
  EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 0);
  EXPECT_EQ(MpiSpy::count("MPI_Free_mem"), 1);
}

TEST(HostBlockPool, KeepsNoSmallBlockBesideTheLargerOneThatTookItsPlace) {
  HostBlockPool pool;
  MpiSpy::reset();
  for (const Size bytes : {10, 20, 30, 20, 10}) pool.give_back(pool.take(bytes, Site::current()));
  EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 3);
  EXPECT_EQ(MpiSpy::count("MPI_Free_mem"), 2);
}

}  // namespace
}  // namespace tessera
