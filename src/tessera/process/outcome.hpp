// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>

namespace tessera {

/// How a piece of the program ended: an exit code, and the error message if there is one.
struct Outcome {
  ExitCode code = ExitCode::ok;
  std::string message;
  bool failed() const { return code != ExitCode::ok; }
};

/// Turns the exception being handled into an outcome. Call it in a catch block. An Error keeps its
/// code. Exhausted memory, also if Kokkos reports it, gives ExitCode::out_of_memory. Any other
/// exception gives ExitCode::usage.
Outcome describe_current_exception();

/// Runs f and returns how it ended. If f returns an exit code, the outcome has this code.
template <class F>
Outcome outcome_of(F&& f) {
  try {
    if constexpr (std::is_same_v<std::invoke_result_t<F>, ExitCode>) {
      return {std::forward<F>(f)(), ""};
    } else {
      std::forward<F>(f)();
      return {};
    }
  } catch (...) {
    return describe_current_exception();
  }
}

}  // namespace tessera
