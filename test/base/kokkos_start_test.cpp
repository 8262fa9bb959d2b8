// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <tessera/base/kokkos_start.hpp>

namespace tessera {
namespace {

using Words = std::vector<std::string>;

TEST(KokkosArguments, AreThoseWithThePrefixOnly) {
  const Words given = {"run", "--help", "--kokkos-disable-warnings", "--device-id=3"};
  EXPECT_EQ(kokkos_arguments(given, {}), Words{"--kokkos-disable-warnings"});
}

TEST(KokkosArguments, CarryTheChoiceUnlessTheUserDecided) {
  EXPECT_EQ(kokkos_arguments({}, {.device = 1, .threads = 4}),
            (Words{"--kokkos-device-id=1", "--kokkos-num-threads=4"}));
  const Words decided = {"--kokkos-num-threads=2", "--kokkos-map-device-id-by=random"};
  EXPECT_EQ(kokkos_arguments(decided, {.device = 1, .threads = 4}), decided);
}

TEST(KokkosStart, RecognisesAFailedAllocation) {
  EXPECT_TRUE(is_allocation_failure(std::bad_alloc()));
  EXPECT_FALSE(is_allocation_failure(std::runtime_error("something else")));
#ifndef __SANITIZE_ADDRESS__  // which ends the process instead
  try {
    const Kokkos::View<char*, Kokkos::HostSpace> view("too large", std::size_t{1} << 60);
    FAIL() << "allocated";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_allocation_failure(error)) << error.what();
  }
#endif
}

}  // namespace
}  // namespace tessera
