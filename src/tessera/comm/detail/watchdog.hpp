// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// A communicator that the watchdog knows.
struct WatchedGroup {
  std::uint64_t id = 0;  ///< the same on all its ranks, unique in the job
  std::string axis;
  std::vector<int> world_ranks;  ///< the world rank of each of its ranks
  std::uint64_t calls = 0;       ///< number of collective calls that this process has started
  Operation latest = Operation::barrier;  ///< the last collective call
};

/// The call that a thread is in.
struct WatchedCall {
  WatchedGroup* group = nullptr;  ///< null if its communicator has been destroyed
  Operation operation = Operation::barrier;
  Site site{};
  int peer = -1;  ///< rank in the group; messages only
  int tag = 0;
  std::uint64_t number = 0;  ///< of the collective call in its group; 0 for messages
  bool waiting = false;      ///< in the wait() of a request
};

/// Ends the job if a call takes longer than the timeout. One line names operation, axis, call site,
/// the ranks that have not arrived, and what they are doing.
///
/// A thread in every process times the current call. If it is overdue, the thread asks the threads
/// of all other ranks, which answer at once, whatever their callers do. Ranks that do not answer
/// are reported as such. A rank that has been asked asks nothing itself for a while, and of two
/// ranks that ask at once the higher one gives way. So one rank reports and aborts the job with
/// ExitCode::communication.
///
/// Asking needs MPI_THREAD_MULTIPLE. Without it every rank reports its own call only. Time in which
/// the process was suspended does not count.
class Watchdog {
 public:
  /// Collective over `world`, which has the ranks of MPI_COMM_WORLD in the same order.
  /// timeout_seconds > 0.
  Watchdog(MPI_Comm world, double timeout_seconds, const Site& site);
  /// Stops the thread; so does MPI_Finalize.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Registers `comm` for as long as the result lives. Collective over `comm`.
  std::shared_ptr<WatchedGroup> watch(MPI_Comm comm, const std::string& axis, const Site& site);

  /// The caller may block until it calls leave(). Numbers a collective call, unless the caller
  /// waits for a request, whose call has a number.
  void enter(WatchedCall& call);
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Seconds = std::chrono::duration<double>;

  /// A message between the threads.
  struct Message {
    enum class Kind : std::int32_t { question, answer };
    Kind kind = Kind::question;
    std::int32_t from = 0;      ///< world rank
    std::uint64_t inquiry = 0;  ///< the same in a question and its answers
    std::uint64_t group = 0, number = 0;
    Operation operation = Operation::barrier;  ///< question: the overdue call
    bool arrived = false;                      ///< answer: this rank has started the call
    std::array<char, 208> where{};             ///< answer: what the rank is doing
  };

  /// The answers about the overdue call of this rank.
  struct Inquiry {
    Time due;                        ///< end of the wait for answers
    std::map<int, Message> answers;  ///< by world rank
  };

  void run(const std::stop_token& stopping);
  void stop();
  void send(int to, Message message);
  void read_messages();
  void answer(const Message& question);
  void time_call();
  void ask();
  [[noreturn]] void report(const std::string& missing);
  std::string describe_call() const;
  std::string describe_missing() const;

  Seconds timeout_;
  Seconds interval_;
  MpiHandle comm_;  ///< for messages of the threads and for the end
  int rank_ = 0;
  int size_ = 1;
  bool can_ask_ = false;
  int finalize_hook_ = MPI_KEYVAL_INVALID;
  bool all_ended_ = false;  ///< all ranks make no more calls

  // Used by both threads.
  std::mutex mutex_;
  std::vector<WatchedGroup*> groups_;
  std::uint32_t num_watched_ = 0;
  WatchedCall call_;         ///< the current or the last call
  std::uint64_t calls_ = 0;  ///< number of calls so far
  bool inside_ = false;
  bool is_ending_ = false;      ///< the caller makes no more calls
  bool awaits_others_ = false;  ///< the caller waits for all ranks; not after an error

  // Used by the thread of the watchdog only.
  std::list<Message> sent_;  ///< kept, because MPI may read them at any time
  std::uint64_t timed_ = 0;  ///< value of calls_ for the timed call
  Seconds waited_{0};
  Time last_look_ = Clock::now();
  Time not_before_ = last_look_;  ///< another rank has asked and will report
  std::optional<Inquiry> inquiry_;
  std::jthread thread_;
};

}  // namespace tessera
