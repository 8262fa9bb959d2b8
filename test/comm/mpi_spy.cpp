// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_spy.hpp"

#include <map>
#include <mutex>
#include <string>

#include <mpi.h>

namespace {

/// The watchdog's thread also calls MPI.
std::mutex mutex;

std::map<std::string, int, std::less<>>& counts() {
  static std::map<std::string, int, std::less<>> map;
  return map;
}

void count_call(const char* function) {
  const std::lock_guard lock(mutex);
  ++counts()[function];
}

}  // namespace

/// Counts a function and passes it on.
#define COUNTED(name, parameters, arguments) \
  extern "C" int name parameters {           \
    count_call(#name);                       \
    return P##name arguments;                \
  }

COUNTED(MPI_Allreduce,
        (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, n, type, op, comm))
COUNTED(MPI_Iallreduce,
        (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
         MPI_Request* request),
        (in, out, n, type, op, comm, request))
COUNTED(MPI_Bcast, (void* v, int n, MPI_Datatype type, int root, MPI_Comm comm),
        (v, n, type, root, comm))
COUNTED(MPI_Barrier, (MPI_Comm comm), (comm))
COUNTED(MPI_Reduce_local, (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op),
        (in, out, n, type, op))
COUNTED(MPI_Alloc_mem, (MPI_Aint bytes, MPI_Info info, void* memory), (bytes, info, memory))
COUNTED(MPI_Free_mem, (void* memory), (memory))
COUNTED(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
COUNTED(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made),
        (comm, color, key, made))
COUNTED(MPI_Comm_free, (MPI_Comm * comm), (comm))
COUNTED(MPI_Iprobe, (int from, int tag, MPI_Comm comm, int* found, MPI_Status* status),
        (from, tag, comm, found, status))

#undef COUNTED

namespace tessera::test {

void MpiSpy::reset() {
  const std::lock_guard lock(mutex);
  counts().clear();
}

int MpiSpy::count(std::string_view function) {
  const std::lock_guard lock(mutex);
  const auto found = counts().find(function);
  return found == counts().end() ? 0 : found->second;
}

int MpiSpy::calls() {
  return count("MPI_Allreduce") + count("MPI_Iallreduce") + count("MPI_Bcast") +
         count("MPI_Barrier") + communicators_made();
}

int MpiSpy::communicators_made() { return count("MPI_Comm_dup") + count("MPI_Comm_split"); }

}  // namespace tessera::test
