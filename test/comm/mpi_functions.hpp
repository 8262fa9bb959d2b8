// SPDX-License-Identifier: Apache-2.0
// The functions of MPI whose calls tests count, through the profiling interface.
#pragma once

#include <mpi.h>

/// Defines the functions. Each one calls count(name) and then MPI.
#define TESSERA_COUNT_MPI(count)                                                                   \
  TESSERA_COUNTED(count, MPI_Allreduce,                                                            \
                  (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
                  (in, out, n, type, op, comm))                                                    \
  TESSERA_COUNTED(count, MPI_Iallreduce,                                                           \
                  (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,  \
                   MPI_Request* request),                                                          \
                  (in, out, n, type, op, comm, request))                                           \
  TESSERA_COUNTED(count, MPI_Bcast, (void* v, int n, MPI_Datatype type, int root, MPI_Comm comm),  \
                  (v, n, type, root, comm))                                                        \
  TESSERA_COUNTED(count, MPI_Allgather,                                                            \
                  (const void* in, int n, MPI_Datatype type, void* out, int m,                     \
                   MPI_Datatype type_out, MPI_Comm comm),                                          \
                  (in, n, type, out, m, type_out, comm))                                           \
  TESSERA_COUNTED(count, MPI_Gatherv,                                                              \
                  (const void* in, int n, MPI_Datatype type, void* out, const int* counts,         \
                   const int* begins, MPI_Datatype type_out, int root, MPI_Comm comm),             \
                  (in, n, type, out, counts, begins, type_out, root, comm))                        \
  TESSERA_COUNTED(count, MPI_Barrier, (MPI_Comm comm), (comm))                                     \
  TESSERA_COUNTED(count, MPI_Reduce_local,                                                         \
                  (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op),                \
                  (in, out, n, type, op))                                                          \
  TESSERA_COUNTED(count, MPI_Alloc_mem, (MPI_Aint bytes, MPI_Info info, void* memory),             \
                  (bytes, info, memory))                                                           \
  TESSERA_COUNTED(count, MPI_Free_mem, (void* memory), (memory))                                   \
  TESSERA_COUNTED(count, MPI_Comm_dup, (MPI_Comm comm, MPI_Comm * made), (comm, made))             \
  TESSERA_COUNTED(count, MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made),      \
                  (comm, color, key, made))                                                        \
  TESSERA_COUNTED(count, MPI_Comm_split_type,                                                      \
                  (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),               \
                  (comm, type, key, info, made))                                                   \
  TESSERA_COUNTED(count, MPI_Comm_free, (MPI_Comm * comm), (comm))                                 \
  TESSERA_COUNTED(count, MPI_Iprobe,                                                               \
                  (int from, int tag, MPI_Comm comm, int* found, MPI_Status* status),              \
                  (from, tag, comm, found, status))

#define TESSERA_COUNTED(count, name, parameters, arguments) \
  extern "C" int name parameters {                          \
    count(#name);                                           \
    return P##name arguments;                               \
  }
