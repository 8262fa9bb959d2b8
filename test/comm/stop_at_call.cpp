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

#include <mpi.h>

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

void count_call() {
  if (is_counted() && ++calls == stop_call) stop();
}

}  // namespace

/// Counts a function and passes it on.
#define COUNTED(name, parameters, arguments) \
  extern "C" int name parameters {           \
    count_call();                            \
    return P##name arguments;                \
  }

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
  count_call();
  const int code = PMPI_Finalize();
  if (is_counted()) std::fprintf(stderr, "%d calls\n", calls);
  return code;
}

COUNTED(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
COUNTED(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made),
        (comm, color, key, made))
COUNTED(MPI_Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
        (comm, type, key, info, made))
COUNTED(MPI_Comm_free, (MPI_Comm * comm), (comm))
COUNTED(MPI_Barrier, (MPI_Comm comm), (comm))
COUNTED(MPI_Bcast, (void* v, int n, MPI_Datatype type, int root, MPI_Comm comm),
        (v, n, type, root, comm))
COUNTED(MPI_Allreduce,
        (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, n, type, op, comm))
COUNTED(MPI_Iallreduce,
        (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
         MPI_Request* request),
        (in, out, n, type, op, comm, request))
COUNTED(MPI_Gather,
        (const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype type_out,
         int root, MPI_Comm comm),
        (in, n, type, out, m, type_out, root, comm))
COUNTED(MPI_Gatherv,
        (const void* in, int n, MPI_Datatype type, void* out, const int* counts, const int* begins,
         MPI_Datatype type_out, int root, MPI_Comm comm),
        (in, n, type, out, counts, begins, type_out, root, comm))
COUNTED(MPI_Allgather,
        (const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype type_out,
         MPI_Comm comm),
        (in, n, type, out, m, type_out, comm))
COUNTED(MPI_Allgatherv,
        (const void* in, int n, MPI_Datatype type, void* out, const int* counts, const int* begins,
         MPI_Datatype type_out, MPI_Comm comm),
        (in, n, type, out, counts, begins, type_out, comm))
COUNTED(MPI_File_open, (MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file),
        (comm, name, mode, info, file))
COUNTED(MPI_File_close, (MPI_File * file), (file))
COUNTED(MPI_File_write_at_all,
        (MPI_File file, MPI_Offset offset, const void* v, int n, MPI_Datatype type,
         MPI_Status* status),
        (file, offset, v, n, type, status))
