// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include <tessera/base/mpi_error.hpp>
#include <tessera/base/share_text.hpp>

namespace tessera {

std::vector<std::string> gather_texts(MPI_Comm comm, const std::string& mine, const Site& site) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", site);
  const std::int64_t length = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&length, 1, MPI_INT64_T, lengths.data(), 1, MPI_INT64_T, comm),
            "MPI_Allgather", site);
  std::vector<int> counts, begins;
  std::int64_t total = 0;
  for (const std::int64_t count : lengths) {
    begins.push_back(static_cast<int>(total));
    counts.push_back(static_cast<int>(count));
    total += count;
    if (total > std::numeric_limits<int>::max())
      throw Error(ExitCode::communication, "the texts of all ranks together are longer than 2 GiB");
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  check_mpi(MPI_Allgatherv(mine.data(), static_cast<int>(length), MPI_CHAR, all.data(),
                           counts.data(), begins.data(), MPI_CHAR, comm),
            "MPI_Allgatherv", site);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    texts.push_back(
        all.substr(static_cast<std::size_t>(begins[rank]), static_cast<std::size_t>(counts[rank])));
  return texts;
}

}  // namespace tessera
