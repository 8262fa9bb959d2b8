// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/mpi_error.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/process/watchdog.hpp>

namespace tessera {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr auto look_interval = 50ms;
constexpr Seconds longest_step = 1s;  // after a longer one the process was suspended
constexpr Seconds ask_turn = 100ms;   // between ranks; all ask within 3 s
constexpr Seconds report_turn{1.5};   // launchers give ranks about a second to end
constexpr Seconds last_report_turn = 6s;
constexpr auto answer_grace = 1s;
constexpr auto reporter_grace = 5s;                // until a rank that has asked reports and aborts
constexpr double end_grace = 10, error_grace = 1;  // seconds
constexpr std::string_view end_of_all = "the end of all ranks";

/// A message between two watchdogs.
struct WatchdogMessage {
  bool is_question = true;
  bool arrived = false;      ///< answer: this rank has begun the call
  std::int32_t from = 0;     ///< world rank
  std::uint64_t serial = 0;  ///< of the overdue call, in a question and its answers
  std::uint64_t group = 0, number = 0;
  std::array<char, 24> what{};    ///< question: the overdue call
  std::array<char, 208> where{};  ///< answer: what the rank is doing
};

template <std::size_t n>
void set_text(std::array<char, n>& to, std::string_view text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), n - 1));
}

struct TimedCall {
  const WatchedCall* call;
  std::uint64_t serial;
  Clock::time_point last_look;
  Seconds waited{0};
};

/// The answers about an overdue call of this rank.
struct Inquiry {
  std::uint64_t serial = 0;
  Clock::time_point due{};                 ///< end of the wait for answers
  std::map<int, WatchdogMessage> answers;  ///< by world rank
};

}  // namespace

class Watchdog {
 public:
  /// Never destroyed, because its thread may outlive the objects of main.
  static Watchdog& get() {
    static Watchdog& only = *new Watchdog;
    return only;
  }

  void enter(WatchedCall& call) {
    const std::lock_guard lock(mutex_);
    if (WatchedGroup* group = call.group) {
      if (!call.waiting && call.peer < 0) {
        call.number = ++group->calls_;
        group->latest_ = call.what;
      }
      has_ended_ = group == everyone_.get();
      if (!has_ended_) latest_ = call;
    }
    calls_.push_back({&call, ++calls_made_, Clock::now()});
    start_thread();
  }
  void leave(const WatchedCall& call) {
    const std::lock_guard lock(mutex_);
    std::erase_if(calls_, [&](const TimedCall& timed) {
      if (timed.call == &call && inquiry_ && inquiry_->serial == timed.serial) inquiry_.reset();
      return timed.call == &call;
    });
  }
  /// The first rank makes the id from its world rank and the number of its groups.
  void add(WatchedGroup& group, MPI_Comm comm, const Site& site) {
    int size = 0;
    check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", site);
    const std::array mine{rank_, groups_made_++};
    std::vector<std::array<int, 2>> all(static_cast<std::size_t>(size));
    check_mpi(MPI_Allgather(mine.data(), 2, MPI_INT, all.data(), 2, MPI_INT, comm), "MPI_Allgather",
              site);
    for (const std::array<int, 2>& one : all) group.world_ranks_.push_back(one[0]);
    group.id_ = static_cast<std::uint64_t>(all[0][0]) << 32 | static_cast<std::uint64_t>(all[0][1]);
    const std::lock_guard lock(mutex_);
    groups_.push_back(&group);
  }
  void remove(WatchedGroup& group) {
    const std::lock_guard lock(mutex_);
    std::erase(groups_, &group);
    if (latest_.group == &group) latest_.group = nullptr;
  }
  WatchedGroup* everyone() const { return everyone_.get(); }

  void link(MPI_Comm world, const Site& site);
  void unlink();

 private:
  void start_thread();
  void watch();
  std::optional<std::string> look();
  void ask(const TimedCall& timed);
  void read_messages();
  WatchdogMessage answer_to(const WatchdogMessage& question) const;
  void send(int to, WatchdogMessage message);
  std::string text_of(const WatchedCall& call) const;
  std::string missing_ranks(const WatchedCall& call) const;

  std::mutex mutex_;
  std::vector<TimedCall> calls_;  ///< from the outermost to the innermost one
  std::vector<WatchedGroup*> groups_;
  WatchedCall latest_{};  ///< of a communicator
  std::uint64_t calls_made_ = 0;
  int groups_made_ = 0;
  bool has_thread_ = false, has_ended_ = false;
  std::optional<Inquiry> inquiry_;

  // The fields from here on belong to linked processes.
  std::mutex link_mutex_;  ///< held by the thread while it uses MPI
  bool is_linked_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;  ///< never freed: messages may still be on their way
  int rank_ = 0, size_ = 1;
  std::unique_ptr<WatchedGroup> everyone_;
  std::list<WatchdogMessage> sent_;  ///< kept, because MPI may read them at any time
  Clock::time_point not_before_{};   ///< another rank has asked and will report
};

/// The thread ends when it has nothing to do.
void Watchdog::start_thread() {
  if (has_thread_) return;
  try {
    std::thread([this] { watch(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error&) {
    // Without a thread there is no limit.
  }
}

void Watchdog::watch() {
  bool knows_gpu = false;
  try {
    while (true) {
      std::this_thread::sleep_for(look_interval);
      const std::lock_guard linked(link_mutex_);
      if (is_linked_) {
        // MPI may move device messages in this thread.
        if (!std::exchange(knows_gpu, true)) use_own_gpu();
        read_messages();
      }
      if (const std::optional<std::string> message = look()) {
        log_from_this_rank(*message);
        abort_job(ExitCode::communication, *message);
      }
      const std::lock_guard lock(mutex_);
      has_thread_ = is_linked_ || !calls_.empty();
      if (!has_thread_) return;
    }
  } catch (const Error& error) {
    log_from_this_rank(fmt::format("the watchdog failed: {}", error.what()));
    abort_job(ExitCode::communication);
  }
}

/// Times all calls. Returns the line that ends the job, if a call is overdue. Lower ranks ask or
/// report first; the others have usually been asked, or been ended, before their turn.
std::optional<std::string> Watchdog::look() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  for (TimedCall& timed : calls_) {
    const WatchedCall& call = *timed.call;
    timed.waited += std::min<Seconds>(now - std::exchange(timed.last_look, now), longest_step);
    const bool asks = is_linked_ && call.group != nullptr;
    const int rank = std::max(rank_, log_rank());  // known from the launcher or from MPI
    const Seconds turn = asks ? rank * std::min<Seconds>(ask_turn, Seconds(3s) / size_)
                              : std::min(rank * report_turn, last_report_turn);
    if (timed.waited < Seconds(call.limit) + turn) continue;
    const std::string overdue =
        fmt::format("{} has waited {:.1f} s", text_of(call), timed.waited.count());
    if (!asks)
      return fmt::format("rank {}: {}{}", rank, overdue,
                         call.group == nullptr
                             ? " for other ranks"
                             : "; missing ranks cannot be named without MPI_THREAD_MULTIPLE");
    if (!inquiry_ && now >= not_before_) ask(timed);
    if (!inquiry_ || inquiry_->serial != timed.serial) continue;
    const bool has_all = static_cast<int>(inquiry_->answers.size()) == size_ - 1;
    if (has_all || now >= inquiry_->due) return overdue + "; " + missing_ranks(call);
  }
  return std::nullopt;
}

void Watchdog::ask(const TimedCall& timed) {
  const WatchedCall& call = *timed.call;
  WatchdogMessage question;
  question.serial = timed.serial;
  question.group = call.group->id_;
  question.number = call.number;
  set_text(question.what, call.what);
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) send(rank, question);
  inquiry_ = Inquiry{timed.serial, timed.last_look + answer_grace, {}};
}

void Watchdog::send(int to, WatchdogMessage message) {
  message.from = rank_;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(&sent_.emplace_back(message), sizeof(WatchdogMessage), MPI_BYTE, to, 0, comm_,
                      &request),
            "MPI_Isend", Site::current());
  check_mpi(MPI_Request_free(&request), "MPI_Request_free", Site::current());
}

void Watchdog::read_messages() {
  for (;;) {
    int found = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, 0, comm_, &found, &handle, MPI_STATUS_IGNORE),
              "MPI_Improbe", Site::current());
    if (!found) return;
    WatchdogMessage message;
    check_mpi(MPI_Mrecv(&message, sizeof(WatchdogMessage), MPI_BYTE, &handle, MPI_STATUS_IGNORE),
              "MPI_Mrecv", Site::current());
    const std::lock_guard lock(mutex_);
    if (!message.is_question) {
      if (inquiry_ && message.serial == inquiry_->serial) inquiry_->answers[message.from] = message;
      continue;
    }
    send(message.from, answer_to(message));
    if (inquiry_ && rank_ < message.from) continue;
    inquiry_.reset();
    not_before_ = Clock::now() + reporter_grace;
  }
}

WatchdogMessage Watchdog::answer_to(const WatchdogMessage& question) const {
  WatchdogMessage reply;
  reply.is_question = false;
  reply.serial = question.serial;
  for (const WatchedGroup* group : groups_) {
    if (group->id_ != question.group || question.number == 0) continue;
    reply.arrived = group->calls_ > question.number ||
                    (group->calls_ == question.number && group->latest_ == question.what.data());
  }
  const std::string state = has_ended_ ? "ended" : "computing";
  const std::string where = !calls_.empty() && !has_ended_ ? "in " + text_of(*calls_.back().call)
                            : latest_.what.empty()         ? state + ", has made no call"
                                                           : state + " after " + text_of(latest_);
  set_text(reply.where, where);
  return reply;
}

std::string Watchdog::text_of(const WatchedCall& call) const {
  std::string text = call.waiting ? "the request of " : "";
  text += call.what;
  if (call.peer >= 0)
    text += fmt::format(" {} rank {} with tag {}", call.what == "send" ? "to" : "from",
                        call.group != nullptr ? call.group->world_ranks_[call.peer] : call.peer,
                        call.tag);
  if (call.group != nullptr && call.group != everyone_.get())
    text += " over axis " + call.group->axis_;
  return text + " at " + to_string(call.site);
}

std::string Watchdog::missing_ranks(const WatchedCall& call) const {
  std::vector<int> members = call.group->world_ranks_;
  if (call.peer >= 0) members = {members[call.peer]};
  std::map<int, std::string> missing, arrived;
  for (const int rank : members) {
    if (rank == rank_) continue;
    const auto answer = inquiry_->answers.find(rank);
    if (answer == inquiry_->answers.end()) {
      missing[rank] = "no answer";
    } else {
      (answer->second.arrived ? arrived : missing)[rank] = answer->second.where.data();
    }
  }
  std::vector<std::string> parts;
  for (const auto& [ranks, where] : ranks_by_text(missing.empty() ? arrived : missing))
    parts.push_back(fmt::format("{} ({})", ranks, where));
  return (missing.empty() ? "all ranks have arrived: " : "missing: ") + join(parts);
}

void Watchdog::link(MPI_Comm world, const Site& site) {
  int thread_level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&thread_level), "MPI_Query_thread", site);
  if (everyone_) return;
  {
    const std::lock_guard lock(mutex_);
    check_mpi(MPI_Comm_rank(world, &rank_), "MPI_Comm_rank", site);
    check_mpi(MPI_Comm_size(world, &size_), "MPI_Comm_size", site);
  }
  if (thread_level != MPI_THREAD_MULTIPLE) return;
  check_mpi(MPI_Comm_dup(world, &comm_), "MPI_Comm_dup", site);
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", site);
  // MPI_Finalize first deletes the attributes of MPI_COMM_SELF.
  const auto on_delete = [](MPI_Comm, int, void*, void*) {
    get().unlink();
    return MPI_SUCCESS;
  };
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr),
            "MPI_Comm_create_keyval", site);
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr", site);
  MPI_Comm_free_keyval(&key);  // the attribute keeps it
  everyone_.reset(new WatchedGroup(size_));
  const std::lock_guard linked(link_mutex_);
  const std::lock_guard lock(mutex_);
  groups_.push_back(everyone_.get());
  is_linked_ = true;
  start_thread();
}

/// Waits in a barrier until no rank makes calls any more, so that the thread can answer until then.
/// During an exception it waits only for a moment, in which ranks with the same error end, too.
void Watchdog::unlink() {
  const bool is_error = std::uncaught_exceptions() > 0;
  const double limit = is_error || timeout_seconds() <= 0 ? 0 : timeout_seconds() + end_grace;
  {
    const WaitLimit wait(end_of_all_ranks(limit));
    const Timer timer;
    int done = 0;
    MPI_Request end = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_, &end);
    while (MPI_Test(&end, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
      if (is_error && timer.seconds() > error_grace) break;
      std::this_thread::sleep_for(200us);
    }
  }
  const std::lock_guard linked(link_mutex_);
  const std::lock_guard lock(mutex_);
  is_linked_ = false;
}

void link_watchdogs(MPI_Comm world, const Site& site) { Watchdog::get().link(world, site); }

WatchedGroup::WatchedGroup(int world_size)
    : id_(~std::uint64_t{0}), world_ranks_(static_cast<std::size_t>(world_size)) {
  std::iota(world_ranks_.begin(), world_ranks_.end(), 0);
}

WatchedGroup::WatchedGroup(MPI_Comm comm, const std::string& axis, const Site& site) : axis_(axis) {
  Watchdog::get().add(*this, comm, site);
}

WatchedGroup::~WatchedGroup() { Watchdog::get().remove(*this); }

WatchedCall end_of_all_ranks(double seconds, const Site& site) {
  return {.what = end_of_all, .site = site, .limit = seconds, .group = Watchdog::get().everyone()};
}

WaitLimit::WaitLimit(std::string_view what, double seconds, const Site& site)
    : WaitLimit(WatchedCall{.what = what, .site = site, .limit = seconds}) {}

WaitLimit::WaitLimit(const WatchedCall& call) : call_(call) {
  if (call_.limit > 0) Watchdog::get().enter(call_);
}

WaitLimit::~WaitLimit() {
  if (call_.limit > 0) Watchdog::get().leave(call_);
}

}  // namespace tessera
