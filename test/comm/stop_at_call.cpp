// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD. It stops the rank STOP_RANK in its STOP_CALL-th call of MPI after
// MPI_Init_thread, as a node that hangs does; 0 means MPI_Init_thread itself. The rank prints
// "stopped" before, or if there is no such call, at the end how many calls it made.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "mpi_functions.hpp"

namespace {

int number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

const int stop_rank = number("STOP_RANK"), stop_call = number("STOP_CALL");
std::atomic<bool> has_started = false;
int rank = -1, calls = 0;
std::thread::id starter;  // calls of other threads are not counted

bool is_counted() {
  return has_started && rank == stop_rank && std::this_thread::get_id() == starter;
}

void stop() {
  std::fputs("stopped\n", stderr);
  raise(SIGSTOP);
}

void count_call(const char* /*function*/) {
  if (is_counted() && ++calls == stop_call) stop();
}

}  // namespace

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int launched_as = std::max(number("OMPI_COMM_WORLD_RANK"), number("PMI_RANK"));
  if (stop_call == 0 && launched_as == stop_rank) stop();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  starter = std::this_thread::get_id();
  has_started = true;
  return code;
}

extern "C" int MPI_Finalize() {
  count_call("MPI_Finalize");
  const int code = PMPI_Finalize();
  if (is_counted()) std::fprintf(stderr, "%d calls\n", calls);
  return code;
}

TESSERA_COUNT_MPI(count_call)
