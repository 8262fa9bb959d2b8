// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <tuple>

namespace tessera {

namespace detail {
struct InFlight;

/// Shares ownership of what a call in flight reads and writes.
struct KeepAlive {
  virtual ~KeepAlive() = default;
};

template <class... Views>
struct KeepViews final : KeepAlive {
  explicit KeepViews(const Views&... v) : views(v...) {}
  std::tuple<Views...> views;
};
}  // namespace detail

/// A call of a communicator in flight. It owns the Views that the call reads and writes; they may
/// be used again after wait(), or after test() has returned true.
///
/// wait() must be called, or test() until it is true. A request that goes away unfinished ends the
/// job with one line and exit code 5. Only while an exception is on its way up it is kept until
/// the end of the program instead: the exception is the report.
class [[nodiscard]] Request {
 public:
  Request() noexcept;  ///< finished
  explicit Request(std::unique_ptr<detail::InFlight> call) noexcept;
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request();

  /// Returns when the call has finished; at once if it has before. Throws what the call throws.
  void wait();
  /// Has the call finished? Lets it make progress.
  bool test();

 private:
  void require_finished() noexcept;
  std::unique_ptr<detail::InFlight> call_;
};

void wait_all(std::span<Request> requests);

}  // namespace tessera
