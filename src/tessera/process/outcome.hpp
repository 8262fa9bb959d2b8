// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/base/site.hpp>

namespace tessera {

/// How a piece of the program ended: an exit code, and the error message if there is one.
struct Outcome {
  ExitCode code = ExitCode::ok;
  std::string message;
  bool failed() const { return code != ExitCode::ok; }
};

/// Turns the exception being handled into an outcome. An Error keeps its code. Exhausted memory,
/// also if Kokkos reports it, gives ExitCode::out_of_memory; others give ExitCode::usage.
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

/// Runs f on every rank and returns its result. If f throws on any rank, every rank throws the
/// Error of the lowest failed rank, so that none waits for a rank that has left. Collective over
/// `ranks`, for which there is a raise_first_failure(). f may make only those collective calls that
/// fail on all ranks or on none.
template <class Ranks, class F>
auto collectively(const Ranks& ranks, F&& f, Site site = Site::current())
    -> std::invoke_result_t<F> {
  using Result = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<Result>) {
    raise_first_failure(ranks, outcome_of(std::forward<F>(f)), site);
  } else {
    std::optional<Result> result;
    const Outcome outcome = outcome_of([&] { result.emplace(std::forward<F>(f)()); });
    raise_first_failure(ranks, outcome, site);
    return std::move(*result);
  }
}

}  // namespace tessera
