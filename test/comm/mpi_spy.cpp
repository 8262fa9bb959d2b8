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

extern "C" {

int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count_call("MPI_Allreduce");
  return PMPI_Allreduce(in, out, n, type, op, comm);
}
int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  count_call("MPI_Iallreduce");
  return PMPI_Iallreduce(in, out, n, type, op, comm, request);
}
int MPI_Bcast(void* v, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  count_call("MPI_Bcast");
  return PMPI_Bcast(v, n, type, root, comm);
}
int MPI_Barrier(MPI_Comm comm) {
  count_call("MPI_Barrier");
  return PMPI_Barrier(comm);
}
int MPI_Reduce_local(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op) {
  count_call("MPI_Reduce_local");
  return PMPI_Reduce_local(in, out, n, type, op);
}
int MPI_Alloc_mem(MPI_Aint bytes, MPI_Info info, void* memory) {
  count_call("MPI_Alloc_mem");
  return PMPI_Alloc_mem(bytes, info, memory);
}
int MPI_Free_mem(void* memory) {
  count_call("MPI_Free_mem");
  return PMPI_Free_mem(memory);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  count_call("MPI_Comm_dup");
  return PMPI_Comm_dup(comm, made);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  count_call("MPI_Comm_split");
  return PMPI_Comm_split(comm, color, key, made);
}
int MPI_Comm_free(MPI_Comm* comm) {
  count_call("MPI_Comm_free");
  return PMPI_Comm_free(comm);
}
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  count_call("MPI_Iprobe");
  return PMPI_Iprobe(from, tag, comm, found, status);
}
}  // extern "C"

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
