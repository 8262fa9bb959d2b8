// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include <fmt/format.h>

#include <tessera/comm/detail/communicator_state.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/runtime.hpp>

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

void Request::require_finished() noexcept {
  if (!call_) return;
  if (std::uncaught_exceptions() > 0) return call_->abandon();
  log_from_this_rank(
      fmt::format("{} over axis {} started at {}: its request was destroyed before it completed",
                  call_->watched.what, call_->comm->axis, to_string(call_->watched.site)));
  abort_job(ExitCode::communication);
}

void Request::wait() {
  if (!call_) return;
  const std::unique_ptr<detail::InFlight> call = std::move(call_);
  const detail::CallScope scope(*call);
  try {
    call->pending->advance(true);
  } catch (...) {
    call->abandon();
    throw;
  }
}

bool Request::test() {
  if (!call_) return true;
  // MPI moves messages in here, so profilers see it as time of the call.
  const Region region(call_->comm->region_name(call_->operation));
  try {
    if (!call_->pending->advance(false)) return false;
  } catch (...) {
    call_->abandon();
    call_.reset();
    throw;
  }
  call_.reset();
  return true;
}

}  // namespace tessera
