// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>

namespace tessera {
namespace {

/// What a sender says about its message. Travels as bytes between processes of one program.
struct Header {
  std::int64_t count = 0;
  DType type = DType::float32;
  char site[55] = {};
};

Header header_of(const Call& call) {
  Header header{call.in.count, call.in.type, {}};
  to_string(call.site).copy(header.site, sizeof header.site - 1);
  return header;
}

/// The header of one message on its way, and then the message.
class CheckedPending final : public PendingCall {
 public:
  CheckedPending(const Call& call, MPI_Comm control, const std::string& axis)
      : call_(call), axis_(axis) {
    constexpr int bytes = sizeof(Header);
    if (call.operation == Operation::send) {
      header_ = header_of(call);
      check_mpi(MPI_Isend(&header_, bytes, MPI_BYTE, call.peer, call.tag, control, &request_),
                "MPI_Isend", call.site);
    } else {
      check_mpi(MPI_Irecv(&header_, bytes, MPI_BYTE, call.peer, call.tag, control, &request_),
                "MPI_Irecv", call.site);
    }
  }
  void start_message(Transport& next) { message_ = next.start(call_); }

  bool advance(bool to_the_end) override {
    return advance_header(to_the_end) && message_->advance(to_the_end);
  }
  bool advance_header(bool to_the_end) {
    if (request_ == MPI_REQUEST_NULL) return true;
    if (!is_done(request_, to_the_end, call_.site)) return false;
    compare();
    return true;
  }

 private:
  void compare() const {
    if (call_.operation == Operation::send) return;
    if (header_.count == call_.out.count && header_.type == call_.out.type) return;
    throw Error(ExitCode::communication, "{}: expected {} {}, but rank {} sends {} {} at {}",
                describe(call_, axis_), call_.out.count, name_of(call_.out.type), call_.peer,
                header_.count, name_of(header_.type), header_.site);
  }

  Call call_;
  const std::string& axis_;
  Header header_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::unique_ptr<PendingCall> message_;
};

class MessageCheck final : public Transport {
 public:
  MessageCheck(std::unique_ptr<Transport> next, MPI_Comm control, std::string axis)
      : next_(std::move(next)), control_(control), axis_(std::move(axis)) {}

  void connect(const Site& site) override { next_->connect(site); }
  void run(const Call& call) override {
    if (!is_point_to_point(call.operation)) return next_->run(call);
    CheckedPending header(call, control_, axis_);
    header.advance_header(true);
    next_->run(call);
  }
  std::unique_ptr<PendingCall> start(const Call& call) override {
    if (!is_point_to_point(call.operation)) return next_->start(call);
    auto pending = std::make_unique<CheckedPending>(call, control_, axis_);
    pending->start_message(*next_);
    return pending;
  }

 private:
  std::unique_ptr<Transport> next_;
  MPI_Comm control_;
  std::string axis_;
};

}  // namespace

std::unique_ptr<Transport> make_message_check(std::unique_ptr<Transport> next, MPI_Comm control,
                                              std::string axis) {
  return std::make_unique<MessageCheck>(std::move(next), control, std::move(axis));
}

}  // namespace tessera
