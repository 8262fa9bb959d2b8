// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/sleep.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/detail/watchdog.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/runtime.hpp>

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr auto answer_grace = 1s;
constexpr auto reporter_grace = 5s;  // until a rank that has asked reports and aborts
constexpr auto end_grace = 10s;      // beyond the timeout, at the end
constexpr auto error_grace = 1s;     // for ranks that may have the same error
constexpr auto end_interval = 200us;
constexpr std::uint64_t end_of_all = ~std::uint64_t{0};  // a group: the end of all ranks

std::vector<int> world_ranks_of(MPI_Comm comm, int size, const Site& site) {
  MPI_Group members = MPI_GROUP_NULL, everybody = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(comm, &members), "MPI_Comm_group", site);
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &everybody), "MPI_Comm_group", site);
  std::vector<int> ranks(size), world(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  check_mpi(MPI_Group_translate_ranks(members, size, ranks.data(), everybody, world.data()),
            "MPI_Group_translate_ranks", site);
  check_mpi(MPI_Group_free(&members), "MPI_Group_free", site);
  check_mpi(MPI_Group_free(&everybody), "MPI_Group_free", site);
  return world;
}

}  // namespace

Watchdog::Watchdog(MPI_Comm world, double timeout_seconds, const Site& site)
    : timeout_(timeout_seconds),
      interval_(std::clamp(timeout_seconds / 20, 0.002, 0.05)),
      comm_(MpiHandle::duplicate(world, site)) {
  check_mpi(MPI_Comm_rank(world, &rank_), "MPI_Comm_rank", site);
  check_mpi(MPI_Comm_size(world, &size_), "MPI_Comm_size", site);
  int thread_level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&thread_level), "MPI_Query_thread", site);
  can_ask_ = thread_level == MPI_THREAD_MULTIPLE;
  // MPI_Finalize first deletes the attributes of MPI_COMM_SELF.
  const auto on_delete = [](MPI_Comm, int, void* watchdog, void*) {
    static_cast<Watchdog*>(watchdog)->stop();
    return MPI_SUCCESS;
  };
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &finalize_hook_, nullptr),
            "MPI_Comm_create_keyval", site);
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, finalize_hook_, this), "MPI_Comm_set_attr", site);
  thread_ = std::jthread([this](const std::stop_token& stopping) { run(stopping); });
}

Watchdog::~Watchdog() {
  stop();
  if (!all_ended_ || !awaits_others_) comm_.keep();  // messages may still be on their way
  if (!mpi_is_running()) return;
  MPI_Comm_delete_attr(MPI_COMM_SELF, finalize_hook_);
  MPI_Comm_free_keyval(&finalize_hook_);
}

std::shared_ptr<WatchedGroup> Watchdog::watch(MPI_Comm comm, const std::string& axis,
                                              const Site& site) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", site);
  auto made = std::make_unique<WatchedGroup>();
  made->axis = axis;
  made->world_ranks = world_ranks_of(comm, size, site);
  // The first rank makes the id from its world rank and the number of its groups.
  made->id = static_cast<std::uint64_t>(rank_) << 32 | num_watched_++;
  check_mpi(MPI_Bcast(&made->id, 1, MPI_UINT64_T, 0, comm), "MPI_Bcast", site);
  const std::lock_guard lock(mutex_);
  groups_.push_back(made.get());
  return {made.release(), [this](WatchedGroup* group) {
            {
              const std::lock_guard locked(mutex_);
              std::erase(groups_, group);
              if (call_.group == group) call_.group = nullptr;
            }
            delete group;
          }};
}

void Watchdog::enter(WatchedCall& call) {
  const std::lock_guard lock(mutex_);
  if (!call.waiting && !is_point_to_point(call.operation)) {
    call.number = ++call.group->calls;
    call.group->latest = call.operation;
  }
  call_ = call;
  inside_ = true;
  ++calls_;
}

void Watchdog::leave() {
  const std::lock_guard lock(mutex_);
  inside_ = false;
}

/// Waits in a barrier until all ranks make no more calls, so that the thread can answer until then.
/// Ranks that do not end in time are reported as missing. During an exception it waits only for a
/// moment, in which ranks with the same error end, too.
void Watchdog::stop() {
  if (!thread_.joinable()) return;
  const bool is_error = std::uncaught_exceptions() > 0;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    awaits_others_ = can_ask_ && !is_error;
  }
  if (can_ask_) {
    const Seconds patience = std::min<Seconds>(error_grace, timeout_ / 2);
    const Timer timer;
    int done = 0;
    MPI_Request end = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_.get(), &end);
    while (MPI_Test(&end, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
      if (is_error && timer.seconds() > patience.count()) break;
      std::this_thread::sleep_for(end_interval);
    }
    all_ended_ = done != 0;
  }
  thread_.request_stop();
  thread_.join();
}

void Watchdog::run(const std::stop_token& stopping) {
  try {
    use_own_gpu();  // MPI may move device messages in this thread
    while (!sleep_until_stop(stopping, interval_)) {
      if (can_ask_) read_messages();
      time_call();
    }
  } catch (const Error& error) {
    log_from_this_rank(fmt::format("the watchdog failed: {}", error.what()));
    abort_job(ExitCode::communication);
  }
}

void Watchdog::send(int to, Message message) {
  message.from = rank_;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(&sent_.emplace_back(message), sizeof(Message), MPI_BYTE, to, 0, comm_.get(),
                      &request),
            "MPI_Isend", Site::current());
  check_mpi(MPI_Request_free(&request), "MPI_Request_free", Site::current());
}

void Watchdog::read_messages() {
  for (;;) {
    int found = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, 0, comm_.get(), &found, &handle, MPI_STATUS_IGNORE),
              "MPI_Improbe", Site::current());
    if (!found) return;
    Message message;
    check_mpi(MPI_Mrecv(&message, sizeof(Message), MPI_BYTE, &handle, MPI_STATUS_IGNORE),
              "MPI_Mrecv", Site::current());
    switch (message.kind) {
      case Message::Kind::question:
        answer(message);
        if (inquiry_ && rank_ < message.from) break;
        inquiry_.reset();
        not_before_ = Clock::now() + reporter_grace;
        break;
      case Message::Kind::answer:
        if (inquiry_ && message.inquiry == timed_) inquiry_->answers[message.from] = message;
        break;
    }
  }
}

void Watchdog::answer(const Message& question) {
  Message reply;
  reply.kind = Message::Kind::answer;
  reply.inquiry = question.inquiry;
  const std::lock_guard lock(mutex_);
  if (question.group == end_of_all) reply.arrived = is_ending_;
  for (const WatchedGroup* group : groups_) {
    if (group->id != question.group || question.number == 0) continue;
    reply.arrived = group->calls > question.number ||
                    (group->calls == question.number && group->latest == question.operation);
  }
  const std::string state = is_ending_ ? "ended" : "computing";
  const std::string where = calls_ == 0 ? state + ", has made no call"
                            : inside_   ? "in " + describe_call()
                                        : state + " after " + describe_call();
  std::memcpy(reply.where.data(), where.data(), std::min(where.size(), reply.where.size() - 1));
  send(question.from, reply);
}

/// A step counts as one second at most: after a longer one the process was suspended.
void Watchdog::time_call() {
  const std::lock_guard lock(mutex_);
  const Time now = Clock::now();
  const Seconds step = std::min<Seconds>(now - std::exchange(last_look_, now), 1s);
  const bool is_waiting = inside_ || awaits_others_;
  const std::uint64_t current = calls_ + (is_ending_ ? 1 : 0);  // the end counts as a call
  if (!is_waiting || timed_ != current) {
    timed_ = current;
    waited_ = Seconds(0);
    inquiry_.reset();
    return;
  }
  waited_ += step;
  if (inquiry_) {
    const bool has_all = static_cast<int>(inquiry_->answers.size()) == size_ - 1;
    if (has_all || now >= inquiry_->due) report(describe_missing());
    return;
  }
  // Lower ranks ask first, so that the others have been asked before their turn.
  const Seconds turn = can_ask_ ? std::max<Seconds>(2 * interval_, 20ms) : Seconds(500ms);
  const Seconds stagger = rank_ * std::min<Seconds>(turn, Seconds(3s) / size_);
  const Seconds limit = is_ending_ ? timeout_ + end_grace : timeout_;
  if (waited_ < limit + stagger || now < not_before_) return;
  if (!can_ask_) report("missing ranks cannot be named without MPI_THREAD_MULTIPLE");
  ask();
}

void Watchdog::ask() {
  Message question;
  question.inquiry = timed_;
  question.group = is_ending_ ? end_of_all : call_.group->id;
  question.number = call_.number;
  question.operation = call_.operation;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) send(rank, question);
  }
  inquiry_ = Inquiry{last_look_ + answer_grace, {}};
}

void Watchdog::report(const std::string& missing) {
  const std::string speaker = can_ask_ ? "" : fmt::format("rank {}: ", rank_);
  const std::string waiting = is_ending_ ? "the end of all ranks" : describe_call();
  const std::string message =
      fmt::format("{}{} has waited {:.1f} s; {}", speaker, waiting, waited_.count(), missing);
  log_from_this_rank(message);
  abort_job(ExitCode::communication, message);
}

std::string Watchdog::describe_call() const {
  std::string text = call_.waiting ? "the request of " : "";
  text += name_of(call_.operation);
  if (is_point_to_point(call_.operation)) {
    const auto peer = static_cast<std::size_t>(call_.peer);
    text +=
        fmt::format(" {} rank {} with tag {}", call_.operation == Operation::send ? "to" : "from",
                    call_.group ? call_.group->world_ranks[peer] : call_.peer, call_.tag);
  }
  if (call_.group) text += " over axis " + call_.group->axis;
  return text + " at " + to_string(call_.site);
}

std::string Watchdog::describe_missing() const {
  std::vector<int> members(static_cast<std::size_t>(size_));
  std::iota(members.begin(), members.end(), 0);
  if (!is_ending_) members = call_.group->world_ranks;
  if (!is_ending_ && is_point_to_point(call_.operation)) members = {members[call_.peer]};
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
  for (const auto& [ranks, where] : ranks_by_text(missing.empty() ? arrived : missing)) {
    parts.push_back(fmt::format("{} ({})", ranks, where));
  }
  return (missing.empty() ? "all ranks have arrived: " : "missing: ") + join(parts);
}

}  // namespace tessera
