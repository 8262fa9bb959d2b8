// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <system_error>

#include <fmt/format.h>

#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

Outcome describe_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {ExitCode::out_of_memory,
              "out of memory: cannot start a thread (limits: ulimit -u and ulimit -v)"};
    return {ExitCode::usage, fmt::format("unexpected: {}", error.what())};
  } catch (const std::exception& error) {
    if (is_allocation_failure(error)) {
      return {ExitCode::out_of_memory, fmt::format("out of memory: {}", error.what())};
    }
    return {ExitCode::usage, fmt::format("unexpected: {}", error.what())};
  } catch (...) {
    return {ExitCode::usage, "unexpected error: an exception of unknown type"};
  }
}

}  // namespace tessera
