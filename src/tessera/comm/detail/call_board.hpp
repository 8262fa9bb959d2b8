// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tessera/comm/operation.hpp>

namespace tessera {

/// Where the calling thread is, in plain words that another thread may copy.
struct CallNote {
  std::uint64_t group = 0;     ///< id of the communicator
  std::uint64_t sequence = 0;  ///< number of the collective call on it; 0 for messages
  const char* file = "";       ///< of static storage, as in std::source_location
  std::uint32_t line = 0;
  std::int32_t peer = -1;  ///< of a message, a rank of the communicator
  std::int32_t tag = 0;
  Operation operation = Operation::barrier;
  bool waiting = false;  ///< in the wait() of a request
  std::array<char, 2> padding{};
};

/// One thread writes what it is doing, another reads it: a sequence lock. Writing takes a few
/// stores, no lock and no clock, as it happens in every call.
class CallBoard {
 public:
  struct Reading {
    CallNote note;              ///< the call, or the last one that has ended
    std::uint64_t version = 0;  ///< another one for each entry and each exit; 0: no call yet
    bool inside = false;
  };

  void enter(const CallNote& note) noexcept {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + writing, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    const auto words = std::bit_cast<Words>(note);
    for (std::size_t i = 0; i < words.size(); ++i) {
      words_[i].store(words[i], std::memory_order_relaxed);
    }
    version_.store(version + inside, std::memory_order_release);
  }

  void leave() noexcept {
    version_.store(version_.load(std::memory_order_relaxed) + (next - inside),
                   std::memory_order_release);
  }

  Reading read() const noexcept {
    for (;;) {
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      if (version % next == writing) continue;
      Words words;
      for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = words_[i].load(std::memory_order_relaxed);
      }
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) != version) continue;
      return {std::bit_cast<CallNote>(words), version, version % next == inside};
    }
  }

 private:
  // The version modulo 4: 0 outside, 1 writing, 2 inside.
  static constexpr std::uint64_t writing = 1, inside = 2, next = 4;
  using Words = std::array<std::uint64_t, sizeof(CallNote) / sizeof(std::uint64_t)>;
  static_assert(sizeof(CallNote) == sizeof(Words));

  std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words_{};
};

}  // namespace tessera
