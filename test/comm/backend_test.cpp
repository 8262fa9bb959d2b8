// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/comm/backend.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

std::string text_of(Backend asked, const BackendFacts& facts) {
  return message_library(choose_backend(asked, facts)).at("message_backend");
}

TEST(Backend, IsNcclWhereItWorks) {
  constexpr BackendFacts works{true, true, 1};
  EXPECT_EQ(text_of(Backend::automatic, works), "nccl (every rank has a GPU of its own)");
  EXPECT_EQ(text_of(Backend::nccl, works), "nccl (asked for)");
  EXPECT_EQ(text_of(Backend::mpi, works), "mpi (asked for)");
}

TEST(Backend, IsMpiOrAnErrorWhereNcclDoesNotWork) {
  const std::vector<std::pair<BackendFacts, std::string>> obstacles = {
      {{false, true, 1}, "this build does not include NCCL"},
      {{false, false, 0}, "Kokkos has no CUDA device in this build"},
      {{true, true, 2}, "ranks share a GPU, which NCCL does not allow"}};
  for (const auto& [facts, reason] : obstacles) {
    EXPECT_EQ(text_of(Backend::automatic, facts), "mpi (" + reason + ")");
    EXPECT_EQ(test::error_of([&, &facts = facts] { choose_backend(Backend::nccl, facts); }),
              "distributed.backend = nccl: " + reason + "; must be auto or mpi");
  }
}

}  // namespace
}  // namespace tessera
