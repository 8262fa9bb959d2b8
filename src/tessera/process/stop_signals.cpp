// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <pthread.h>

#include <Kokkos_Core.hpp>

#include <tessera/base/sleep.hpp>
#include <tessera/process/stop_signals.hpp>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Action = struct sigaction;

constexpr Clock::duration one_request = std::chrono::milliseconds(300);

// Handlers use these only.
std::atomic<Clock::rep> first_arrival = 0;  // 0: none
std::atomic<void (*)(int)> call_again = nullptr;
static_assert(decltype(first_arrival)::is_always_lock_free);

void record(int signal) {
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep first = 0;
  if (first_arrival.compare_exchange_strong(first, now)) return;
  if (now - first > one_request.count()) call_again.load()(signal);
}

/// Calls f(i) once on each thread of the host space; the caller is one of them. A number i always
/// means the same thread.
template <class F>
void on_each_host_thread(const F& f) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  Kokkos::parallel_for("tessera::signal_masks", Kokkos::RangePolicy<Host>(0, Host().concurrency()),
                       f);
}

}  // namespace

StopSignals::StopSignals(void (*again)(int signal))
    : masks_(Kokkos::DefaultHostExecutionSpace().concurrency()) {
  first_arrival = 0;
  call_again = again;
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : signals) sigaddset(&blocked, signal);
  receiver_ = std::jthread([blocked](const std::stop_token& stopping) {
    pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
    while (!sleep_until_stop(stopping, std::chrono::hours(1))) {
    }
  });
  on_each_host_thread([&](std::size_t i) { pthread_sigmask(SIG_BLOCK, &blocked, &masks_[i].set); });
  Action action{};
  action.sa_handler = record;
  // Interrupted system calls in libraries are restarted.
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sigaction(signals[i], nullptr, &actions_[i]);
    if (actions_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  // A signal that has arrived must not meet the previous handler, which may end the process.
  const auto is_pending = [] {
    sigset_t pending;
    sigpending(&pending);
    return std::ranges::any_of(signals, [&](int one) { return sigismember(&pending, one) == 1; });
  };
  for (int i = 0; i < 1000 && is_pending(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &actions_[i], nullptr);
  on_each_host_thread(
      [&](std::size_t i) { pthread_sigmask(SIG_SETMASK, &masks_[i].set, nullptr); });
}

bool StopSignals::arrived() const { return first_arrival != 0; }

/// The signal ends the process when its handler returns.
void StopSignals::end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace tessera
