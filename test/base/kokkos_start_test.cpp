// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <tessera/base/kokkos_start.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using Words = std::vector<std::string>;

TEST(KokkosArguments, AreThoseWithThePrefixOnly) {
  const Words given = {"run", "--help", "--kokkos-print-configuration", "--device-id=3"};
  EXPECT_EQ(kokkos_arguments(given, {}),
            (Words{"--kokkos-print-configuration", "--kokkos-disable-warnings"}));
}

TEST(KokkosArguments, CarryTheChoiceUnlessTheUserDecided) {
  EXPECT_EQ(kokkos_arguments({}, {.device = 1, .threads = 4}),
            (Words{"--kokkos-device-id=1", "--kokkos-num-threads=4", "--kokkos-disable-warnings"}));
  const Words decided = {"--kokkos-num-threads=2", "--kokkos-map-device-id-by=random",
                         "--kokkos-disable-warnings"};
  EXPECT_EQ(kokkos_arguments({decided[0], decided[1]}, {.device = 1, .threads = 4}), decided);
}

TEST(KokkosArguments, ThatKokkosDoesNotKnowAreRejected) {
  const auto error = [](const char* argument) {
    return test::error_of([&] { kokkos_arguments({argument}, {}); });
  };
  EXPECT_EQ(error("--kokkos-num-threads=many"),
            "--kokkos-num-threads = many: must be a positive number");
  EXPECT_EQ(error("--kokkos-num-threads=0"), "--kokkos-num-threads = 0: must be a positive number");
  EXPECT_EQ(error("--kokkos-device-id"), "--kokkos-device-id = : must be a number");
  EXPECT_EQ(error("--kokkos-threads=2").substr(0, 46),
            "--kokkos-threads is not known; Kokkos takes --");
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
