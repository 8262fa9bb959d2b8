// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <tessera/process/outcome.hpp>

namespace tessera {
namespace {

bool is_allocation_failure(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // A container was asked for more elements than it can ever hold.
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) return true;
  // Kokkos has no class of its own for this.
  return std::string_view(error.what()).find("failed to allocate") != std::string_view::npos;
}

}  // namespace

Outcome describe_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::exception& error) {
    const auto* system = dynamic_cast<const std::system_error*>(&error);
    if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
      return {ExitCode::out_of_memory,
              "out of memory: cannot start a thread (limits: ulimit -u and ulimit -v)"};
    if (is_allocation_failure(error))
      return {ExitCode::out_of_memory, fmt::format("out of memory: {}", error.what())};
    return {ExitCode::usage, fmt::format("unexpected: {}", error.what())};
  } catch (...) {
    return {ExitCode::usage, "unexpected error: an exception of unknown type"};
  }
}

}  // namespace tessera
