// SPDX-License-Identifier: Apache-2.0
#include <tessera/comm/detail/monitor_mail.hpp>

namespace tessera {

MonitorMail::MonitorMail(MPI_Comm world, const Site& site)
    : comm_(MpiHandle::duplicate(world, site)) {
  check_mpi(MPI_Comm_rank(comm_.get(), &rank_), "MPI_Comm_rank", site);
  check_mpi(MPI_Comm_size(comm_.get(), &size_), "MPI_Comm_size", site);
}

MonitorMail::~MonitorMail() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  for (Outgoing& mail : outgoing_) {
    if (mail.request != MPI_REQUEST_NULL) MPI_Request_free(&mail.request);
  }
}

void MonitorMail::send(int to, Letter letter) {
  letter.from = rank_;
  Outgoing& mail = outgoing_.emplace_back();
  mail.letter = letter;
  check_mpi(MPI_Isend(&mail.letter, sizeof(Letter), MPI_BYTE, to, 0, comm_.get(), &mail.request),
            "MPI_Isend", Site::current());
}

std::optional<Letter> MonitorMail::receive() {
  for (auto mail = outgoing_.begin(); mail != outgoing_.end();) {
    int sent = 0;
    check_mpi(MPI_Test(&mail->request, &sent, MPI_STATUS_IGNORE), "MPI_Test", Site::current());
    mail = sent ? outgoing_.erase(mail) : std::next(mail);
  }
  int arrived = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  check_mpi(MPI_Improbe(MPI_ANY_SOURCE, 0, comm_.get(), &arrived, &message, MPI_STATUS_IGNORE),
            "MPI_Improbe", Site::current());
  if (!arrived) return {};
  Letter letter;
  check_mpi(MPI_Mrecv(&letter, sizeof(Letter), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv",
            Site::current());
  return letter;
}

}  // namespace tessera
