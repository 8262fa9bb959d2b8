// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/comm/backend.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

constexpr BackendFacts works{true, true, 1};

std::string refusal(const BackendFacts& facts) {
  return test::error_of([&] { choose_backend(Backend::nccl, facts); });
}

TEST(Backend, IsNcclWhereItWorks) {
  EXPECT_EQ(message_library(choose_backend(Backend::automatic, works)).backend,
            "nccl (every rank has a GPU of its own)");
  EXPECT_EQ(choose_backend(Backend::nccl, works).backend, Backend::nccl);
  EXPECT_EQ(message_library(choose_backend(Backend::mpi, works)).backend, "mpi (asked for)");
}

TEST(Backend, IsMpiWhereNcclDoesNotWork) {
  const auto automatic = [](const BackendFacts& facts) {
    return *message_library(choose_backend(Backend::automatic, facts)).backend;
  };
  EXPECT_EQ(automatic({false, true, true}), "mpi (this build does not include NCCL)");
  EXPECT_EQ(automatic({false, false, 0}), "mpi (Kokkos has no CUDA device in this build)");
  EXPECT_EQ(automatic({true, true, 2}), "mpi (ranks share a GPU, which NCCL does not allow)");
}

TEST(Backend, IsAnErrorIfNcclIsAskedForAndDoesNotWork) {
  EXPECT_EQ(refusal({false, true, true}),
            "distributed.backend = nccl: this build does not include NCCL; must be auto or mpi");
  EXPECT_EQ(refusal({false, false, 0}),
            "distributed.backend = nccl: Kokkos has no CUDA device in this build; must be auto or "
            "mpi");
  EXPECT_EQ(refusal({true, true, 2}),
            "distributed.backend = nccl: ranks share a GPU, which NCCL does not allow; must be "
            "auto or mpi");
}

}  // namespace
}  // namespace tessera
