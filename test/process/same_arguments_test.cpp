// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tessera/process/same_arguments.hpp>

namespace tessera {
namespace {

TEST(SameArguments, MayHaveAnyOrderAndOtherGpus) {
  EXPECT_EQ(other_arguments_error({}, {}, 1), "");
  EXPECT_EQ(other_arguments_error({"run", "a.toml", "--quiet"}, {"run", "--quiet", "a.toml"}, 1),
            "");
  EXPECT_EQ(other_arguments_error({"run", "--kokkos-device-id=1"}, {"run"}, 1), "");
}

TEST(SameArguments, NameWhatOneRankLacks) {
  EXPECT_EQ(other_arguments_error({"run"}, {"run", "--json", "a"}, 3),
            "--json is given on rank 0 but not on rank 3; every rank needs the same arguments");
  EXPECT_EQ(other_arguments_error({"run", "--json", "b"}, {"run", "--json", "a"}, 3),
            "b is given on rank 3 but not on rank 0; every rank needs the same arguments");
  EXPECT_EQ(other_arguments_error({"--set", "a=1", "--set", "a=1"}, {"--set", "a=1"}, 2),
            "--set is given on rank 2 but not on rank 0; every rank needs the same arguments");
}

}  // namespace
}  // namespace tessera
