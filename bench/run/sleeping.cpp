// SPDX-License-Identifier: Apache-2.0
#include "run/sleeping.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tessera::bench {

void sleep_until_all_arrive(MPI_Comm comm) {
  using namespace std::chrono_literals;
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &arrived);
  std::chrono::microseconds nap = 100us;
  for (int all = 0;;) {
    MPI_Test(&arrived, &all, MPI_STATUS_IGNORE);
    if (all) return;
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(2 * nap, 10ms);
  }
}

}  // namespace tessera::bench
