// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/process/kokkos_start.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

using Words = std::vector<std::string>;

TEST(KokkosArguments, MustBeKnown) {
  check_kokkos_arguments({"run", "--threads=3", "--kokkos-device-id=7", "--kokkos-num-threads=2"});
  EXPECT_EQ(test::error_of([] { check_kokkos_arguments({"--kokkos-threads=2"}); }),
            "--kokkos-threads is not a known option; known are --kokkos-num-threads and "
            "--kokkos-device-id; for other settings use the variables KOKKOS_...");
}

TEST(KokkosArguments, AreHiddenFromTheProgram) {
  EXPECT_EQ(reversed_own_arguments({"run", "--kokkos-num-threads=2", "a.toml", "--kokkos"}),
            (Words{"--kokkos", "a.toml", "run"}));
}

TEST(Arguments, WithoutAValueAreRejected) {
  const auto error = [](const Words& arguments) {
    return test::error_of([&] { reversed_own_arguments(arguments); });
  };
  EXPECT_EQ(error({"run", "a.toml", "--mesh", ""}), "the argument after --mesh is empty");
  EXPECT_EQ(error({"", "a.toml"}), "the argument after the program's name is empty");
  EXPECT_EQ(error({"run", "--mesh=", "a.toml"}), "--mesh= has no value");
  EXPECT_EQ(reversed_own_arguments({"--set=a.b=", "--set", "a.b="}),
            (Words{"a.b=", "--set", "--set=a.b="}));
}

TEST(Arguments, MayBeginWithTheHomeDirectory) {
  const std::string home = std::getenv("HOME");
  EXPECT_EQ(reversed_own_arguments({"~/a.toml", "--json=~/b=~", "--set", "a.b=~/c", "-~", "c~/d"}),
            (Words{"c~/d", "-~", "a.b=~/c", "--set", "--json=" + home + "/b=~", home + "/a.toml"}));
  EXPECT_EQ(test::error_of([] { reversed_own_arguments({"--json=~else/a"}); }),
            "~else/a: cannot replace ~; write the directory out");
}

std::optional<AskedNumber> asked(const Words& arguments, const char* variable,
                                 const char* setting) {
  return asked_number(
      arguments,
      [&](const char* name) {
        const bool same =
            std::string(name) == "KOKKOS_DEVICE_ID" || std::string(name) == "KOKKOS_NUM_THREADS";
        return same ? variable : nullptr;
      },
      setting);
}

TEST(AskedNumber, IsTheLastFlagElseTheVariable) {
  EXPECT_FALSE(asked({"run", "--device-id=3"}, nullptr, "device-id"));
  const auto flag = asked({"--kokkos-device-id=3", "--kokkos-device-id=0"}, "1", "device-id");
  ASSERT_TRUE(flag);
  EXPECT_EQ(flag->name, "--kokkos-device-id");
  EXPECT_EQ(flag->number, 0);
  EXPECT_EQ(asked({}, "1", "device-id")->name, "KOKKOS_DEVICE_ID");
  EXPECT_EQ(asked({}, "12", "num-threads")->number, 12);
}

TEST(AskedNumber, RejectsInvalidNumbers) {
  const auto error = [](const Words& arguments, const char* variable, const char* setting) {
    return test::error_of([&] { asked(arguments, variable, setting); });
  };
  EXPECT_EQ(error({"--kokkos-num-threads=many"}, nullptr, "num-threads"),
            "--kokkos-num-threads = many: must be a positive number");
  EXPECT_EQ(error({"--kokkos-num-threads=0"}, nullptr, "num-threads"),
            "--kokkos-num-threads = 0: must be a positive number");
  EXPECT_EQ(error({"--kokkos-device-id"}, nullptr, "device-id"),
            "--kokkos-device-id = : must be a number, 0 or more");
  EXPECT_EQ(error({}, "-1", "device-id"), "KOKKOS_DEVICE_ID = -1: must be a number, 0 or more");
  EXPECT_EQ(error({}, "99999999999", "num-threads"),
            "KOKKOS_NUM_THREADS = 99999999999: must be a positive number");
}

TEST(GpuOfRank, IsTheOneAskedForElseRanksOfANodeTakeTurns) {
  const auto gpu = [](const Words& arguments, const std::string& variable, int rank,
                      std::optional<int> gpus = 4) {
    const auto environment = [&](const char* name) { return variable == name ? "2" : nullptr; };
    return gpu_of_rank(arguments, environment, rank, gpus);
  };
  EXPECT_EQ(gpu({}, "", 3), 3);
  EXPECT_EQ(gpu({}, "", 5), 1);
  EXPECT_EQ(gpu({"--kokkos-device-id=0"}, "KOKKOS_DEVICE_ID", 3), 0);
  EXPECT_EQ(gpu({}, "KOKKOS_DEVICE_ID", 3), 2);
  for (const char* const variable : {"KOKKOS_MAP_DEVICE_ID_BY", "KOKKOS_VISIBLE_DEVICES"})
    EXPECT_FALSE(gpu({}, variable, 3)) << variable;
  EXPECT_FALSE(gpu({}, "", 3, std::nullopt)) << "a build without GPUs";
}

}  // namespace
}  // namespace tessera
