// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/log.hpp>
#include <tessera/base/mpi_error.hpp>
#include <tessera/base/runtime.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/detail/monitor.hpp>

namespace tessera {
namespace {

using namespace std::chrono_literals;

constexpr auto grace = 1s;                // for answers
constexpr auto permission_grace = 500ms;  // for rank 0 to say who reports
constexpr auto reporter_grace = 5s;       // for another rank to print and abort
constexpr auto end_grace = 10s;           // beyond the timeout, for ranks that are done
constexpr auto end_interval = 200us;

std::string call_site(const CallNote& note) {
  return fmt::format("{}:{}", basename_of(note.file), note.line);
}

std::string quiet_threads(int level) {
  const char* name = level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                     : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                                    : "MPI_THREAD_SINGLE";
  return fmt::format("missing ranks cannot be named, as MPI was started with {} only", name);
}

}  // namespace

Watchdog::Monitor::Monitor(MPI_Comm world, double timeout_seconds, const CallBoard& board,
                           const Site& site)
    : board_(board),
      timeout_(timeout_seconds),
      interval_(std::clamp(timeout_seconds / 20, 0.002, 0.05)),
      mail_(world, site),
      last_look_(Clock::now()),
      not_before_(last_look_) {
  check_mpi(MPI_Query_thread(&thread_level_), "MPI_Query_thread", site);
  // MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else.
  const auto on_delete = [](MPI_Comm, int, void* monitor, void*) {
    static_cast<Monitor*>(monitor)->stop();
    return MPI_SUCCESS;
  };
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &finalize_hook_, nullptr),
            "MPI_Comm_create_keyval", site);
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, finalize_hook_, this), "MPI_Comm_set_attr", site);
  thread_ = std::thread([this] { run(); });
}

Watchdog::Monitor::~Monitor() {
  stop();
  if (!all_ended_ || !waits_for_others_) mail_.expect_more();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  MPI_Comm_delete_attr(MPI_COMM_SELF, finalize_hook_);
  MPI_Comm_free_keyval(&finalize_hook_);
}

/// A rank that is done waits for the others, so that its thread can say so when it is missed. Not
/// with an exception on its way up: the others are told, and not waited for. Nor for ever:
/// beyond the timeout somebody has reported, or nobody will.
void Watchdog::Monitor::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_requested_ = true;
    others_awaited_ = thread_level_ == MPI_THREAD_MULTIPLE && std::uncaught_exceptions() == 0;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::Monitor::run() {
  try {
    Time end_due;
    for (bool done = false; !done;) {
      if (is_ending_) {
        std::this_thread::sleep_for(end_interval);
      } else {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, interval_, [this] { return end_requested_; });
        is_ending_ = end_requested_;
        waits_for_others_ = others_awaited_;
        end_due = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_ + end_grace);
      }
      tick();
      done = is_ending_ && (all_ended_ || !waits_for_others_ || Clock::now() > end_due);
    }
  } catch (const Error& error) {
    log_from_this_rank(fmt::format("the watchdog failed: {}", error.what()));
    abort_job(ExitCode::communication);
  }
}

void Watchdog::Monitor::tick() {
  if (thread_level_ == MPI_THREAD_MULTIPLE) {
    if (is_ending_) end();
    read_mail();
  }
  watch(Clock::now());
}

/// Rank 0 counts who is done, and tells all when everybody is, or when it cannot wait itself.
void Watchdog::Monitor::end() {
  if (!std::exchange(has_told_end_, true)) {
    tell(0, Letter::Kind::ended);
    if (mail_.rank() == 0 && !waits_for_others_) num_ended_ = mail_.size();
  }
  if (mail_.rank() != 0 || num_ended_ < mail_.size() || all_ended_) return;
  for (int rank = 0; rank < mail_.size(); ++rank) tell(rank, Letter::Kind::all_ended);
  all_ended_ = true;
}

void Watchdog::Monitor::tell(int to, Letter::Kind kind, std::uint64_t ticket) {
  Letter letter;
  letter.kind = kind;
  letter.ticket = ticket;
  mail_.send(to, letter);
}

void Watchdog::Monitor::read_mail() {
  while (const std::optional<Letter> letter = mail_.receive()) {
    switch (letter->kind) {
      case Letter::Kind::question:
        answer(*letter);
        break;
      case Letter::Kind::answer:
        if (inquiry_ && letter->ticket == ticket_) inquiry_->answers[letter->from] = *letter;
        break;
      case Letter::Kind::may_i_report: {
        const bool free = Clock::now() >= reporter_until_;
        if (free) {
          reporter_ = letter->from;
          reporter_until_ = Clock::now() + reporter_grace;
        }
        tell(letter->from, reporter_ == letter->from ? Letter::Kind::yes : Letter::Kind::no,
             letter->ticket);
        break;
      }
      case Letter::Kind::yes:
        if (inquiry_ && letter->ticket == ticket_) inquiry_->permitted = true;
        break;
      case Letter::Kind::no:
        if (inquiry_ && letter->ticket == ticket_) {
          inquiry_.reset();
          not_before_ = Clock::now() + reporter_grace;
        }
        break;
      case Letter::Kind::ended:
        ++num_ended_;
        break;
      case Letter::Kind::all_ended:
        all_ended_ = true;
        break;
    }
  }
}

void Watchdog::Monitor::answer(const Letter& question) {
  Letter reply;
  reply.kind = Letter::Kind::answer;
  reply.ticket = question.ticket;
  if (const auto group = groups_.find(question.group)) reply.latest = group->latest();
  const std::string where = describe_here();
  std::memcpy(reply.where.data(), where.data(), std::min(where.size(), reply.where.size() - 1));
  mail_.send(question.from, reply);

  const CallBoard::Reading reading = board_.read();
  const bool same_call = reading.inside && reading.note.group == question.group &&
                         reading.note.sequence == question.sequence;
  if (same_call && !inquiry_) not_before_ = Clock::now() + reporter_grace;
}

/// Times the current call. A look that comes late, because the process was suspended, counts as
/// one second at most.
void Watchdog::Monitor::watch(Time now) {
  const Seconds step = std::min<Seconds>(now - last_look_, 1s);
  last_look_ = now;
  const CallBoard::Reading reading = board_.read();
  if (!reading.inside || reading.version != version_) {
    version_ = reading.version;
    waited_ = Seconds(0);
    inquiry_.reset();
    return;
  }
  waited_ += step;
  if (inquiry_) return pursue(now);
  if (waited_ < timeout_ || now < not_before_) return;
  const auto group = groups_.find(reading.note.group);
  if (!group) return;
  // The lower ranks ask first, the others then have their answer from them.
  const auto here = std::find(group->world_ranks.begin(), group->world_ranks.end(), mail_.rank());
  const auto place = static_cast<int>(here - group->world_ranks.begin());
  const bool can_ask = thread_level_ == MPI_THREAD_MULTIPLE;
  const Seconds turn = can_ask ? std::max<Seconds>(2 * interval_, 20ms) : Seconds(500ms);
  const Seconds stagger = std::min<Seconds>(place * turn, 3s);
  if (waited_ < timeout_ + stagger) return;
  if (!can_ask) report_alone(reading.note);
  ask(reading, now);
}

void Watchdog::Monitor::ask(const CallBoard::Reading& reading, Time now) {
  Inquiry inquiry;
  inquiry.reading = reading;
  inquiry.group = groups_.find(reading.note.group);
  inquiry.answers_due = now + grace;
  if (is_point_to_point(reading.note.operation)) {
    inquiry.members = {inquiry.group->world_ranks[static_cast<std::size_t>(reading.note.peer)]};
  } else {
    for (const int rank : inquiry.group->world_ranks) {
      if (rank != mail_.rank()) inquiry.members.push_back(rank);
    }
  }
  Letter question;
  question.kind = Letter::Kind::question;
  question.ticket = ++ticket_;
  question.group = reading.note.group;
  question.sequence = reading.note.sequence;
  for (const int rank : inquiry.members) mail_.send(rank, question);
  inquiry_ = std::move(inquiry);
}

/// Waits for the answers, then for the permission of rank 0, so that one line is printed even if
/// several communicators are stuck; a rank 0 that does not answer permits.
void Watchdog::Monitor::pursue(Time now) {
  Inquiry& inquiry = *inquiry_;
  if (!inquiry.permission_due) {
    if (now < inquiry.answers_due && inquiry.answers.size() < inquiry.members.size()) return;
    inquiry.permission_due = now + permission_grace;
    return tell(0, Letter::Kind::may_i_report, ticket_);
  }
  if (inquiry.permitted || now >= *inquiry.permission_due) report(inquiry);
}

void Watchdog::Monitor::report(const Inquiry& inquiry) {
  const std::string message =
      fmt::format("{} has waited {:.1f} s; {}", describe_call(inquiry.reading.note),
                  waited_.count(), describe_missing(inquiry));
  log_from_this_rank(message);
  abort_job(ExitCode::communication, message);
}

/// Nobody can be asked: the lowest of the ranks that wait comes first, and ends the job.
void Watchdog::Monitor::report_alone(const CallNote& note) {
  const std::string message =
      fmt::format("rank {}: {} has waited {:.1f} s; {}", mail_.rank(), describe_call(note),
                  waited_.count(), quiet_threads(thread_level_));
  log_from_this_rank(message);
  abort_job(ExitCode::communication, message);
}

std::string Watchdog::Monitor::describe_call(const CallNote& note) const {
  const auto group = groups_.find(note.group);
  std::string text = note.waiting ? "the request of " : "";
  text += name_of(note.operation);
  if (is_point_to_point(note.operation)) {
    const auto peer = static_cast<std::size_t>(note.peer);
    text +=
        fmt::format(" {} rank {} with tag {}", note.operation == Operation::send ? "to" : "from",
                    group ? group->world_ranks[peer] : note.peer, note.tag);
  }
  if (group) text += " over axis " + group->axis;
  return text + " at " + call_site(note);
}

std::string Watchdog::Monitor::describe_here() const {
  const CallBoard::Reading reading = board_.read();
  const std::string state = is_ending_ ? "ended" : "computing";
  if (reading.version == 0) return state + ", has made no call";
  if (reading.inside) return "in " + describe_call(reading.note);
  return state + " after " + describe_call(reading.note);
}

/// Ranks that do the same are named together.
std::string Watchdog::Monitor::describe_missing(const Inquiry& inquiry) const {
  const CallNote& note = inquiry.reading.note;
  const std::uint64_t wanted = note.sequence << 8 | static_cast<std::uint64_t>(note.operation);
  std::vector<std::pair<std::string, std::vector<int>>> missing, arrived;
  for (const int rank : inquiry.members) {
    const auto answer = inquiry.answers.find(rank);
    const bool has_answer = answer != inquiry.answers.end();
    const std::string where = has_answer ? answer->second.where.data() : "no answer";
    const bool is_there =
        has_answer && !is_point_to_point(note.operation) &&
        (answer->second.latest == wanted || answer->second.latest >> 8 > note.sequence);
    auto& groups = is_there ? arrived : missing;
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& entry) { return entry.first == where; });
    if (found == groups.end()) found = groups.insert(groups.end(), {where, {}});
    found->second.push_back(rank);
  }
  std::string text = missing.empty() ? "all ranks have arrived: " : "missing: ";
  const auto& groups = missing.empty() ? arrived : missing;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<int> ranks = groups[i].second;
    std::sort(ranks.begin(), ranks.end());
    text += fmt::format("{}{} ({})", i > 0 ? ", " : "", rank_list(ranks), groups[i].first);
  }
  return text;
}

}  // namespace tessera
