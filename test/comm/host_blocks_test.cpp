// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gtest/gtest.h>

#include <tessera/comm/detail/host_blocks.hpp>

#include "comm/mpi_spy.hpp"

namespace tessera {
namespace {

using test::MpiSpy;

TEST(HostBlockPool, ReusesBlocksAndReplacesThoseThatAreTooSmall) {
  HostBlockPool pool;
  MpiSpy::reset();
  for (const Size bytes : {10, 20, 30, 20, 10}) pool.give_back(pool.take(bytes, Site::current()));
  EXPECT_EQ(MpiSpy::count("MPI_Alloc_mem"), 3);
  EXPECT_EQ(MpiSpy::count("MPI_Free_mem"), 2);
  HostBlock large = pool.take(30, Site::current()), small = pool.take(5, Site::current());
  char* const at_small = small.data();
  pool.give_back(std::move(large));
  pool.give_back(std::move(small));
  EXPECT_EQ(pool.take(5, Site::current()).data(), at_small) << "the smallest that is large enough";
}

}  // namespace
}  // namespace tessera
