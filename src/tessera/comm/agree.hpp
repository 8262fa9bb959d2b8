// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <tessera/comm/communicator.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// Collective. If a rank has failed, every rank throws the Error of the lowest failed rank.
void raise_first_failure(const Communicator& comm, const Outcome& mine, Site site);

/// Runs f on every rank and returns its result. If f throws on any rank, every rank throws the
/// Error of the lowest failed rank, so that none waits for a rank that has left. Collective. f may
/// make only those collective calls that fail on all ranks or on none.
template <class F>
auto collectively(const Communicator& comm, F&& f, Site site = Site::current())
    -> std::invoke_result_t<F> {
  using Result = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<Result>) {
    raise_first_failure(comm, outcome_of(std::forward<F>(f)), site);
  } else {
    std::optional<Result> result;
    const Outcome outcome = outcome_of([&] { result.emplace(std::forward<F>(f)()); });
    raise_first_failure(comm, outcome, site);
    return std::move(*result);
  }
}

}  // namespace tessera
