// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/kokkos_compat.hpp>

namespace tessera {
namespace {

using Words = std::vector<std::string>;
constexpr int old_kokkos = 30401;
constexpr int new_kokkos = 50000;

TEST(KokkosArguments, AreThoseWithThePrefixOnly) {
  const Words given = {"run", "--help", "--kokkos-disable-warnings", "--device-id=3"};
  EXPECT_EQ(kokkos_arguments(given, {}), Words{"--kokkos-disable-warnings"});
}

TEST(KokkosArguments, AreSpelledForTheVersion) {
  const Words given = {"--kokkos-num-threads=2", "--kokkos-device=1"};
  EXPECT_EQ(kokkos_arguments(given, {}, old_kokkos),
            (Words{"--kokkos-threads=2", "--kokkos-device=1"}));
  EXPECT_EQ(kokkos_arguments(given, {}, new_kokkos),
            (Words{"--kokkos-num-threads=2", "--kokkos-device-id=1"}));
}

TEST(KokkosArguments, CarryTheDeviceUnlessTheUserDecided) {
  EXPECT_EQ(kokkos_arguments({}, 1, new_kokkos), Words{"--kokkos-device-id=1"});
  EXPECT_EQ(kokkos_arguments({}, 1, old_kokkos), Words{"--kokkos-device=1"});
  const Words decided = {"--kokkos-threads=2", "--kokkos-map-device-id-by=random"};
  EXPECT_EQ(kokkos_arguments(decided, 1, new_kokkos),
            (Words{"--kokkos-num-threads=2", "--kokkos-map-device-id-by=random"}));
}

TEST(KokkosCompat, RecognisesAFailedAllocation) {
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
