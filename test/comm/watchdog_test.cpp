// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <stdexcept>

#include <gtest/gtest.h>
#include <mpi.h>

#include <tessera/comm/detail/watchdog.hpp>

#include "comm/mpi_spy.hpp"

namespace tessera::test {
namespace {

/// How many letters the threads of all ranks have sent and read while `f` had a watchdog.
template <class F>
std::array<int, 2> letters_of(const F& f) {
  MpiSpy::reset();
  try {
    const Watchdog watchdog(MPI_COMM_WORLD, 60, Site::current());
    MPI_Barrier(MPI_COMM_WORLD);
    f();
  } catch (const std::runtime_error&) {
  }
  std::array<int, 2> letters{MpiSpy::count("MPI_Isend"), MpiSpy::count("MPI_Mrecv")};
  MPI_Allreduce(MPI_IN_PLACE, letters.data(), 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return letters;
}

/// One rank alone has no watchdog.
class Watchdogs : public testing::Test {
 protected:
  void SetUp() override {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) GTEST_SKIP() << "several ranks";
  }
};

TEST_F(Watchdogs, LeaveNoLetterUnread) {
  const auto [sent, read] = letters_of([] {});
  EXPECT_GT(sent, 0);
  EXPECT_EQ(read, sent);
}

TEST_F(Watchdogs, LeaveNoLetterUnreadAfterAnErrorOfAllRanks) {
  const auto [sent, read] = letters_of([] { throw std::runtime_error("on all ranks"); });
  EXPECT_GT(sent, 0);
  EXPECT_EQ(read, sent);
}

}  // namespace
}  // namespace tessera::test
