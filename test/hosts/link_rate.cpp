// SPDX-License-Identifier: Apache-2.0
// Prints how many bytes a second reach the last rank from the first one.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<char> message(1 << 22);
  const int bytes = static_cast<int>(message.size()), last = size - 1;
  double best = 1e9;
  for (int i = 0; i < 4; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(message.data(), bytes, MPI_CHAR, last, 0, MPI_COMM_WORLD);
    if (rank == last)
      MPI_Recv(message.data(), bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    best = std::min(best, MPI_Wtime() - begin);
  }
  if (rank == last) std::printf("%.0f\n", bytes / best);
  MPI_Finalize();
  return 0;
}
