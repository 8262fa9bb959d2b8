// SPDX-License-Identifier: Apache-2.0
// A program outside of the repository: headers, Kokkos, MPI and the library must all arrive.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <tessera/base/split.hpp>
#include <tessera/base/version.hpp>
#include <tessera/base/view.hpp>

namespace {

tessera::Size sum_of_ones(tessera::Size n) {
  const tessera::Vector<double> ones("ones", static_cast<std::size_t>(n));
  Kokkos::deep_copy(ones, 1.0);
  double sum = 0;
  Kokkos::parallel_reduce(
      "sum", Kokkos::RangePolicy<tessera::ExecSpace>(0, n),
      KOKKOS_LAMBDA(const int i, double& s) { s += ones(i); }, sum);
  return static_cast<tessera::Size>(sum);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool right = !tessera::version().empty();
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const tessera::Range rows = tessera::balanced_split(7, size, rank);
    std::printf("rank %d of %d holds rows %d to %d\n", rank, size, static_cast<int>(rows.begin),
                static_cast<int>(rows.end() - 1));
    right = right && sum_of_ones(rows.count) == rows.count;
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
