// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tessera/comm/detail/monitor_mail.hpp>
#include <tessera/comm/detail/watchdog.hpp>
#include <tessera/comm/detail/watched_groups.hpp>

namespace tessera {

/// The thread of the watchdog.
class Watchdog::Monitor {
 public:
  Monitor(MPI_Comm world, double timeout_seconds, const CallBoard& board, const Site& site);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  WatchedGroups& groups() { return groups_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Seconds = std::chrono::duration<double>;

  /// Questions that this rank has asked about its own overdue call.
  struct Inquiry {
    CallBoard::Reading reading;
    std::shared_ptr<WatchedGroup> group;
    std::vector<int> members;       ///< world ranks that were asked
    std::map<int, Letter> answers;  ///< by world rank
    Time answers_due;
    std::optional<Time> permission_due;  ///< set once the permission to report has been asked for
    bool permitted = false;
  };

  void run();
  void stop();
  void tick();
  void read_mail();
  void tell(int to, Letter::Kind kind, std::uint64_t ticket = 0);
  void end();
  void answer(const Letter& question);
  void watch(Time now);
  void ask(const CallBoard::Reading& reading, Time now);
  void pursue(Time now);
  [[noreturn]] void report(const Inquiry& inquiry);
  [[noreturn]] void report_alone(const CallNote& note);
  std::string describe_call(const CallNote& note) const;
  std::string describe_here() const;
  std::string describe_missing(const Inquiry& inquiry) const;

  const CallBoard& board_;
  Seconds timeout_;
  Seconds interval_;
  int thread_level_ = MPI_THREAD_SINGLE;
  int finalize_hook_ = MPI_KEYVAL_INVALID;
  MonitorMail mail_;
  WatchedGroups groups_;

  // Of the thread alone.
  std::uint64_t version_ = 0;  ///< of the call that is being timed
  Seconds waited_{0};
  Time last_look_;
  Time not_before_;  ///< another rank has asked about this call: leave the report to it
  std::uint64_t ticket_ = 0;
  std::optional<Inquiry> inquiry_;
  int reporter_ = -1;  ///< on rank 0: who may report, until reporter_until_
  Time reporter_until_;
  int num_ended_ = 0;  ///< on rank 0: ranks whose callers have ended
  bool is_ending_ = false;
  bool waits_for_others_ = false;
  bool has_told_end_ = false;
  bool all_ended_ = false;  ///< or rank 0 does not wait for them

  std::mutex mutex_;
  std::condition_variable wake_;
  bool end_requested_ = false;   ///< the caller is done
  bool others_awaited_ = false;  ///< ... and waits until all are
  std::thread thread_;
};

}  // namespace tessera
