// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace tessera {

/// Sleeps for this time, or until a stop of the thread is requested. Returns true in the second
/// case.
template <class Rep, class Period>
bool sleep_until_stop(const std::stop_token& stop, const std::chrono::duration<Rep, Period>& time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, time, [] { return false; });
  return stop.stop_requested();
}

}  // namespace tessera
