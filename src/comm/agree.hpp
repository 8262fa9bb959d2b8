// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera {

/// What went wrong on one rank.
struct Failure {
  ExitCode code = ExitCode::usage;
  std::string message;
};

/// The exception that is being handled, as a Failure. An exception that is no Error of ours counts
/// as ExitCode::usage, memory that ran out as out_of_memory.
Failure current_failure();

/// Collective. Returns if no rank has a failure; else every rank throws that of the lowest failing
/// rank, with the same code and message.
void raise_first_failure(const Communicator& comm, const std::optional<Failure>& mine, Site site);

/// Runs f on every rank, and returns what it returns if it succeeded on all of them. If it threw on
/// any, every rank throws the Error of the lowest failing rank, so that no one waits for a rank
/// that has left. Collective; f itself makes no collective calls unless they cannot fail on some
/// ranks only.
template <class F>
auto collectively(const Communicator& comm, F&& f, Site site = Site::current())
    -> std::invoke_result_t<F> {
  using Result = std::invoke_result_t<F>;
  std::optional<Failure> failure;
  if constexpr (std::is_void_v<Result>) {
    try {
      std::forward<F>(f)();
    } catch (...) {
      failure = current_failure();
    }
    raise_first_failure(comm, failure, site);
  } else {
    std::optional<Result> result;
    try {
      result.emplace(std::forward<F>(f)());
    } catch (...) {
      failure = current_failure();
    }
    raise_first_failure(comm, failure, site);
    return std::move(*result);
  }
}

}  // namespace tessera
