// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>
#include <mpi.h>

#include <tessera/process/share_text.hpp>

namespace tessera {
namespace {

struct World {
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  int rank = 0, size = 1;
};

/// A text of its own for every rank, with every byte in it when it is long.
std::string text_of(int rank, int length) {
  std::string text;
  for (int i = 0; i < length; ++i) text.push_back(static_cast<char>(7 * i + rank));
  return text;
}

TEST(ShareText, EveryRanksTextReachesAll) {
  const World world;
  for (const int length : {0, 1, 300}) {
    const auto length_of = [&](int rank) { return length * (rank % 3); };
    const auto texts = gather_texts(MPI_COMM_WORLD, text_of(world.rank, length_of(world.rank)));
    ASSERT_EQ(texts.size(), static_cast<std::size_t>(world.size));
    for (int rank = 0; rank < world.size; ++rank)
      EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank, length_of(rank)));
  }
}

}  // namespace
}  // namespace tessera
