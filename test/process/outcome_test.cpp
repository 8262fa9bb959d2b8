// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <tessera/process/outcome.hpp>

namespace tessera {
namespace {

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
