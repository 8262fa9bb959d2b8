// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <exception>

#include <tessera/base/runtime.hpp>
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
  print_line(fmt::format("{} over axis {} started at {}: its request was dropped unfinished",
                         name_of(call_->operation), call_->comm->axis, to_string(call_->site)));
  abort_job(ExitCode::communication);
}

void Request::wait() {
  if (!call_) return;
  // After an error the library may still write to the Views: they are never given back then.
  detail::InFlight* const call = call_.release();
  {
    const detail::CallScope scope(*call);
    call->pending->wait();
  }
  delete call;
}

bool Request::test() {
  if (!call_) return true;
  detail::InFlight* const call = call_.release();
  const bool finished = call->pending->test();
  call_.reset(call);
  if (finished) call_.reset();
  return finished;
}

void wait_all(std::span<Request> requests) {
  for (Request& request : requests) request.wait();
}

}  // namespace tessera
