// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include <tessera/comm/communicator_state.hpp>

namespace tessera {

Request::Request() noexcept = default;
Request::Request(std::unique_ptr<detail::InFlight> call) noexcept : call_(std::move(call)) {}
Request::Request(Request&& other) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    require_finished();
    call_ = std::move(other.call_);
  }
  return *this;
}

Request::~Request() { require_finished(); }

/// The library still reads or writes the Views: they cannot be given back.
void Request::require_finished() noexcept {
  if (!call_) return;
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(call_.release());
    return;
  }
  std::fputs(fmt::format("{} over axis {} started at {}: its request was dropped unfinished\n",
                         name_of(call_->operation), call_->comm->axis, to_string(call_->site))
                 .c_str(),
             stderr);
  abort_job(ExitCode::communication);
}

void Request::wait() {
  if (!call_) return;
  const std::unique_ptr<detail::InFlight> call = std::move(call_);
  call->pending->wait();
}

bool Request::test() {
  if (!call_) return true;
  if (!call_->pending->test()) return false;
  call_.reset();
  return true;
}

void wait_all(std::span<Request> requests) {
  for (Request& request : requests) request.wait();
}

}  // namespace tessera
