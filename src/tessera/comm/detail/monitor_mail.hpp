// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>

#include <tessera/comm/detail/mpi_handle.hpp>

namespace tessera {

/// What the watchdog threads say to each other.
struct Letter {
  enum class Kind : std::int32_t { question, answer, may_i_report, yes, no, ended, all_ended };
  Kind kind = Kind::question;
  std::int32_t from = 0;          ///< world rank
  std::uint64_t ticket = 0;       ///< of the inquiry that it belongs to
  std::uint64_t group = 0;        ///< question: the communicator
  std::uint64_t sequence = 0;     ///< question: the call that is overdue
  std::uint64_t latest = 0;       ///< answer: WatchedGroup::latest
  std::array<char, 208> where{};  ///< answer: what this rank is doing
};

/// Letters between the watchdog threads, on a communicator of their own. Nothing here blocks.
class MonitorMail {
 public:
  /// Collective over `world`.
  MonitorMail(MPI_Comm world, const Site& site);
  /// Gives up what has not been delivered.
  ~MonitorMail();
  MonitorMail(const MonitorMail&) = delete;
  MonitorMail& operator=(const MonitorMail&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  void send(int to, Letter letter);
  std::optional<Letter> receive();
  /// Letters of others may still be on their way here when this goes away.
  void expect_more() { comm_.keep(); }

 private:
  struct Outgoing {
    Letter letter;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MpiHandle comm_;
  int rank_ = 0;
  int size_ = 1;
  std::list<Outgoing> outgoing_;
};

}  // namespace tessera
