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

/// The outcome that the exception being handled stands for. Call it in a catch block. Memory that
/// ran out, also Kokkos' way of saying so, is ExitCode::out_of_memory; what is no Error of ours
/// otherwise counts as ExitCode::usage.
Outcome describe_current_exception();

/// Runs f, and returns how it ended. If f returns an exit code, that is how.
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
