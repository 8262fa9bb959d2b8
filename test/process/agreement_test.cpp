// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>
#include <mpi.h>

#include <tessera/process/agreement.hpp>

namespace tessera {
namespace {

constexpr double long_enough = 60;

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

TEST(Agreement, EqualOutcomesStayAsTheyAre) {
  for (const Outcome& mine :
       {Outcome{}, Outcome{ExitCode::usage, "epochs = 0: must be positive"}}) {
    const auto agreed = agree_on_outcome(MPI_COMM_WORLD, mine, long_enough);
    ASSERT_TRUE(agreed);
    EXPECT_EQ(agreed->code, mine.code);
    EXPECT_EQ(agreed->message, mine.message);
  }
}

TEST(Agreement, AnErrorOfOneRankNamesIt) {
  const int last = world_size() - 1;
  Outcome mine;
  if (world_rank() == last) mine = {ExitCode::out_of_memory, "no memory"};
  const auto agreed = agree_on_outcome(MPI_COMM_WORLD, mine, long_enough);
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed->code, ExitCode::out_of_memory);
  EXPECT_EQ(agreed->message,
            last == 0 ? "no memory" : "rank " + std::to_string(last) + ": no memory");
}

TEST(Agreement, TheLowestRanksErrorWins) {
  if (world_size() == 1) return;
  const Outcome mine = world_rank() == 0 ? Outcome{ExitCode::timeout, "slow"}
                                         : Outcome{ExitCode::communication, "another"};
  const auto agreed = agree_on_outcome(MPI_COMM_WORLD, mine, long_enough);
  ASSERT_TRUE(agreed);
  EXPECT_EQ(agreed->code, ExitCode::timeout);
  EXPECT_EQ(agreed->message, "rank 0: slow");
}

TEST(DescribeException, GivesTheExitCodeAndAMessage) {
  const Outcome config = outcome_of([] { throw ConfigError("k", "v", "must be x"); });
  EXPECT_EQ(config.code, ExitCode::usage);
  EXPECT_EQ(config.message, "k = v: must be x");
  EXPECT_EQ(outcome_of([] { throw Error(ExitCode::timeout, "t"); }).code, ExitCode::timeout);
  EXPECT_EQ(outcome_of([] { throw std::bad_alloc(); }).code, ExitCode::out_of_memory);
  const Outcome thread = outcome_of([] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_EQ(thread.code, ExitCode::out_of_memory);
  EXPECT_EQ(thread.message.find("out of memory: cannot start a thread"), 0U) << thread.message;
  EXPECT_EQ(outcome_of([] { throw std::runtime_error("x"); }).message, "unexpected: x");
  EXPECT_EQ(outcome_of([] { throw 1; }).message, "unexpected error: an exception of unknown type");
  EXPECT_EQ(outcome_of([] { throw std::length_error("x"); }).code, ExitCode::out_of_memory);
#ifndef __SANITIZE_ADDRESS__  // it would end the process
  EXPECT_EQ(outcome_of([] {
              const Kokkos::View<char*, Kokkos::HostSpace> view("too large", std::size_t{1} << 60);
            }).code,
            ExitCode::out_of_memory);
#endif
}

}  // namespace
}  // namespace tessera
