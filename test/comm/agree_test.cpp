// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/agree.hpp>

#include "comm/comm_test_support.hpp"

namespace tessera {
namespace {

TEST(Collectively, ReturnsTheResultWhenAllSucceed) {
  const Communicator comm = Communicator::world();
  EXPECT_EQ(collectively(comm, [&] { return comm.rank() + 5; }), comm.rank() + 5);
  int runs = 0;
  collectively(comm, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(comm.ledger().rows().empty());
}

TEST(Collectively, ThrowsTheErrorOfTheLowestFailingRankOnAll) {
  const Communicator comm = Communicator::world();
  const int first = comm.size() > 2 ? 1 : 0;
  for (const std::size_t length : {0, 1, 5000}) {
    const auto text = [&](int rank) { return std::string(length, static_cast<char>('a' + rank)); };
    try {
      collectively(comm, [&] {
        if (comm.rank() >= first) throw Error(ExitCode::wrong_result, text(comm.rank()));
      });
      FAIL() << "no Error on rank " << comm.rank();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::wrong_result);
      EXPECT_EQ(error.what(), text(first));
    }
  }
  comm.barrier();
}

}  // namespace
}  // namespace tessera
