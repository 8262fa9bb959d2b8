// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>

namespace tessera::test {

/// The message of the Error with this code that `action` throws; a failure, and "", if it throws
/// none.
template <class Action>
std::string error_of(const Action& action, ExitCode code = ExitCode::usage) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace tessera::test
