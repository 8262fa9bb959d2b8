// SPDX-License-Identifier: Apache-2.0
// Tests that go wrong on the last rank only; harness tests look at how the launch ends.
#include <csignal>
#include <stdexcept>

#include <gtest/gtest.h>
#include <mpi.h>

namespace {

bool is_last_rank() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return rank == size - 1;
}

TEST(Sample, Passes) { SUCCEED(); }

TEST(Sample, FailsOnTheLastRank) { EXPECT_FALSE(is_last_rank()); }

TEST(Sample, AssertsOutWhileOthersWait) {
  ASSERT_FALSE(is_last_rank()) << "left the test early";
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Sample, ThrowsWhileOthersWait) {
  if (is_last_rank()) throw std::runtime_error("thrown before the barrier");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Sample, DiesWhileOthersWait) {
  if (is_last_rank()) std::raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
}

class FixtureFailsOnTheLastRank : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_FALSE(is_last_rank()) << "no fixture here"; }
};

TEST_F(FixtureFailsOnTheLastRank, First) { MPI_Barrier(MPI_COMM_WORLD); }

TEST_F(FixtureFailsOnTheLastRank, Second) { MPI_Barrier(MPI_COMM_WORLD); }

}  // namespace
