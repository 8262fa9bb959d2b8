// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace tessera {

namespace detail {
struct InFlight;
}

/// A call of a communicator in flight. It keeps the Views of the call alive. They may be used again
/// after wait(), or after test() has returned true.
///
/// A request must be completed by wait() or test(). Destroying it earlier ends the job with one
/// line and exit code 5, unless an exception is on its way.
class [[nodiscard]] Request {
 public:
  Request() noexcept;  ///< finished
  explicit Request(std::unique_ptr<detail::InFlight> call) noexcept;
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request();

  /// Returns when the call has finished. Throws the Error of the call.
  void wait();
  /// Lets the call make progress, and returns whether it has finished.
  bool test();

 private:
  void require_finished() noexcept;
  std::unique_ptr<detail::InFlight> call_;
};

}  // namespace tessera
