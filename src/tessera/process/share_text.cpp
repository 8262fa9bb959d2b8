// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include <tessera/process/mpi_error.hpp>
#include <tessera/process/share_text.hpp>

namespace tessera {
namespace {

constexpr std::int64_t most_bytes = std::numeric_limits<int>::max();

std::vector<std::string> gather(MPI_Comm comm, const std::string& mine, bool everywhere,
                                const Site& site) {
  int size = 0, rank = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", site);
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank", site);
  // All ranks know all lengths, so they throw together.
  const auto length = static_cast<int>(std::min<std::int64_t>(std::ssize(mine), most_bytes));
  std::vector<int> lengths(static_cast<std::size_t>(size)), begins(lengths.size());
  check_mpi(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm), "MPI_Allgather",
            site);
  const auto total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (total >= most_bytes)
    throw Error(ExitCode::communication, "the texts of all ranks together are longer than 2 GiB");
  std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
  const bool receives = everywhere || rank == 0;
  std::string all(static_cast<std::size_t>(receives ? total : 0), '\0');
  check_mpi(everywhere ? MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(),
                                        begins.data(), MPI_CHAR, comm)
                       : MPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(),
                                     begins.data(), MPI_CHAR, 0, comm),
            "MPI_Gatherv", site);
  std::vector<std::string> texts;
  for (std::size_t i = 0; receives && i < lengths.size(); ++i)
    texts.push_back(
        all.substr(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(lengths[i])));
  return texts;
}

}  // namespace

std::vector<std::string> gather_texts(MPI_Comm comm, const std::string& mine, const Site& site) {
  return gather(comm, mine, true, site);
}

std::vector<std::string> gather_texts_on_first(MPI_Comm comm, const std::string& mine,
                                               const Site& site) {
  return gather(comm, mine, false, site);
}

std::string broadcast_text(MPI_Comm comm, std::string mine, const Site& site) {
  auto length = static_cast<std::int64_t>(mine.size());
  check_mpi(MPI_Bcast(&length, 1, MPI_INT64_T, 0, comm), "MPI_Bcast", site);
  if (length > most_bytes)
    throw Error(ExitCode::communication, "the text of rank 0 is longer than 2 GiB");
  mine.resize(length);
  check_mpi(MPI_Bcast(mine.data(), static_cast<int>(length), MPI_CHAR, 0, comm), "MPI_Bcast", site);
  return mine;
}

}  // namespace tessera
