// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
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

/// A communicator as the watchdog knows it.
struct WatchedGroup {
  std::uint64_t id = 0;  ///< the same on all its ranks, and of no other communicator
  std::string axis;
  std::vector<int> world_ranks;           ///< of its ranks, in their order
  std::uint64_t calls = 0;                ///< collective calls that this process has started
  Operation latest = Operation::barrier;  ///< the last of them
};

/// What the calling thread does.
struct WatchedCall {
  WatchedGroup* group = nullptr;  ///< null: its communicator is gone
  Operation operation = Operation::barrier;
  Site site{};
  int peer = -1;  ///< of a message, a rank of the group
  int tag = 0;
  std::uint64_t number = 0;  ///< among the collective calls of the group; 0 for messages
  bool waiting = false;      ///< in the wait() of a request
};

/// Ends the job when a call lasts longer than the timeout, with one line that names operation,
/// axis, call site, and the ranks that have not arrived with what they are doing instead.
///
/// One thread per process times the call that the calling thread has noted. When it is overdue, the
/// thread asks those of all other ranks, which answer at once, however busy or stuck their own
/// callers are; a process that does not answer is named as such. A rank that is asked asks nothing
/// itself for a while, and of two that ask at once the higher gives way: one rank prints, and
/// aborts with ExitCode::communication.
///
/// The thread needs MPI_THREAD_MULTIPLE to ask. Without it each rank speaks for itself only.
/// Time during which the whole process was suspended does not count.
class Watchdog {
 public:
  /// Collective over `world`, which must be congruent with MPI_COMM_WORLD. timeout_seconds > 0.
  Watchdog(MPI_Comm world, double timeout_seconds, const Site& site);
  /// Stops the thread; so does MPI_Finalize.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Collective over `comm`, which is known as long as the result lives.
  std::shared_ptr<WatchedGroup> watch(MPI_Comm comm, const std::string& axis, const Site& site);

  /// From here to leave() the caller may block. A collective call gets its number, unless it waits
  /// for one that has it.
  void enter(WatchedCall& call);
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Seconds = std::chrono::duration<double>;

  /// What the threads say to each other.
  struct Letter {
    enum class Kind : std::int32_t { question, answer, ended, all_ended };
    Kind kind = Kind::question;
    std::int32_t from = 0;      ///< world rank
    std::uint64_t inquiry = 0;  ///< question, and the answer to it
    std::uint64_t group = 0, number = 0;
    Operation operation = Operation::barrier;  ///< question: the call that is overdue
    bool arrived = false;                      ///< answer: started here, too
    std::array<char, 208> where{};             ///< answer: what this rank is doing
  };

  /// A question to all about the overdue call of this rank.
  struct Inquiry {
    Time due;                       ///< for answers
    std::map<int, Letter> answers;  ///< by world rank
  };

  void run();
  void stop();
  void send(int to, Letter letter);
  void read_mail();
  void answer(const Letter& question);
  void end(bool is_late);
  void time_call();
  void ask();
  [[noreturn]] void report(const std::string& missing);
  std::string describe_call() const;
  std::string describe_missing() const;

  Seconds timeout_;
  Seconds interval_;
  MpiHandle mail_;  ///< of the letters alone
  int rank_ = 0;
  int size_ = 1;
  bool can_ask_ = false;
  int finalize_hook_ = MPI_KEYVAL_INVALID;

  // Of both threads.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<WatchedGroup*> groups_;
  std::uint32_t num_watched_ = 0;
  WatchedCall call_;         ///< the current one, or the last
  std::uint64_t calls_ = 0;  ///< so far
  bool inside_ = false;
  bool is_ending_ = false;      ///< the caller is done
  bool awaits_others_ = false;  ///< ... and waits until all are; after an error only for a moment
  Time end_due_;                ///< after an error

  // Of the watching thread alone.
  std::list<Letter> sent_;   ///< kept, as MPI may read them at any time
  std::uint64_t timed_ = 0;  ///< the value of calls_ for the call that is being timed
  Seconds waited_{0};
  Time last_look_ = Clock::now();
  Time not_before_ = last_look_;  ///< another rank asks: leave the report to it
  std::optional<Inquiry> inquiry_;
  int num_ended_ = 0;  ///< on rank 0: ranks whose callers are done
  bool has_told_end_ = false;
  bool all_ended_ = false;  ///< or rank 0 does not wait for them
  std::thread thread_;
};

}  // namespace tessera
