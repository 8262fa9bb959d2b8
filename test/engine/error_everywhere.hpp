// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <tessera/base/error.hpp>

#include "engine/training_support.hpp"

namespace tessera::train_test {

/// Returns the message of the error that `f` throws, which must be the same on every rank.
/// Collective.
inline std::string error_everywhere(const std::function<void()>& f,
                                    ExitCode code = ExitCode::usage) {
  std::string message;
  try {
    f();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    message = error.what();
    EXPECT_EQ(error.code(), code) << message;
  }
  expect_same_on_all_ranks(Communicator::world(),
                           {static_cast<double>(std::hash<std::string>{}(message))},
                           "error messages");
  return message;
}

}  // namespace tessera::train_test
