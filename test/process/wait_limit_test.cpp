// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include <tessera/process/wait_limit.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

/// Sets the variable during its life.
class TimeoutVariable {
 public:
  explicit TimeoutVariable(const char* text) { setenv(name, text, 1); }
  ~TimeoutVariable() { unsetenv(name); }
  TimeoutVariable(const TimeoutVariable&) = delete;
  TimeoutVariable& operator=(const TimeoutVariable&) = delete;

 private:
  static constexpr const char* name = "TESSERA_TIMEOUT_SECONDS";
};

TEST(WaitLimit, ComesFromTheVariableElse300Seconds) {
  if (std::getenv("TESSERA_TIMEOUT_SECONDS") != nullptr) GTEST_SKIP() << "the variable is set";
  EXPECT_EQ(default_timeout_seconds(), 300);
  check_timeout_variable();
  const TimeoutVariable variable("2.5");
  EXPECT_EQ(default_timeout_seconds(), 2.5);
  check_timeout_variable();
}

TEST(WaitLimit, AnInvalidVariableIsRejected) {
  if (std::getenv("TESSERA_TIMEOUT_SECONDS") != nullptr) GTEST_SKIP() << "the variable is set";
  for (const std::string text : {"", "0", "-1", "nan", "inf", "1e10", "5 s", "many"}) {
    const TimeoutVariable variable(text.c_str());
    EXPECT_EQ(default_timeout_seconds(), 300) << text;
    EXPECT_EQ(
        test::error_of(check_timeout_variable),
        "TESSERA_TIMEOUT_SECONDS = " + text + ": must be more than 0 and at most 1e9 seconds");
  }
}

}  // namespace
}  // namespace tessera
