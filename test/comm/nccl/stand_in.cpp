// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/stand_in.hpp"

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>

#include <tessera/comm/backend.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {

// Replace backend_facts.cpp: this launch has GPUs, and all memory is device memory.
BackendFacts backend_facts() { return {true, true, 1}; }
bool is_device_memory(const Buffer&) { return true; }
void* kernel_stream();

}  // namespace tessera

namespace {

using tessera::test::nccl_faults;
using Requests = std::vector<MPI_Request>;

struct Stream;

struct Event {
  Stream* stream = nullptr;
  long position = 0;
  bool has_passed() const;
};

/// Calls that start together after an event. They own `memory`.
struct Work {
  Event after;
  std::vector<std::function<void(Requests&)>> calls;
  std::vector<std::shared_ptr<std::vector<char>>> memory;
  Requests requests;
};

struct Stream {
  std::deque<Work> queue;  ///< only the first one may have started
  long added = 0, finished = 0;
  Event next_waits_for;

  void add(Work work) {
    work.after = std::exchange(next_waits_for, {});
    queue.push_back(std::move(work));
    ++added;
  }
  void progress() {
    while (!queue.empty()) {
      Work& work = queue.front();
      if (!work.after.has_passed()) return;
      for (const auto& call : std::exchange(work.calls, {})) call(work.requests);
      int done = 0;
      MPI_Testall(static_cast<int>(work.requests.size()), work.requests.data(), &done,
                  MPI_STATUSES_IGNORE);
      if (done == 0) return;
      queue.pop_front();
      ++finished;
    }
  }
};

bool Event::has_passed() const { return stream == nullptr || stream->finished >= position; }

Stream kernels;
std::vector<Stream*> streams;  // they progress independently

/// The open group and the stream of its calls.
struct Group {
  int depth = 0;
  Work work;
  Stream* stream = nullptr;
};
Group group;

cudaError_t last_error = cudaSuccess;  ///< which the next launch of a kernel would report

Stream* stream_of(cudaStream_t stream) { return reinterpret_cast<Stream*>(stream); }

bool fails(const char* function) {
  const bool it_does = nccl_faults().failing == function;
  if (it_does) nccl_faults().failing.clear();
  return it_does;
}
ncclResult_t result_of(const char* function) {
  return fails(function) ? ncclSystemError : ncclSuccess;
}
cudaError_t cuda_result_of(const char* function) {
  return fails(function) ? cudaErrorUnknown : cudaSuccess;
}

ncclResult_t submit(const char* function, cudaStream_t stream, std::function<void(Requests&)> call,
                    std::shared_ptr<std::vector<char>> memory = {}) {
  const ncclResult_t result = result_of(function);
  if (result == ncclSystemError) return result;
  ++nccl_faults().calls;
  Work alone;
  Work& work = group.depth > 0 ? group.work : alone;
  work.calls.push_back(std::move(call));
  if (memory) work.memory.push_back(std::move(memory));
  if (group.depth > 0)
    group.stream = stream_of(stream);
  else
    stream_of(stream)->add(std::move(alone));
  return result;
}

bool is_half(ncclDataType_t type) { return type == ncclFloat16 || type == ncclBfloat16; }

/// 16-bit floats are moved, never reduced.
MPI_Datatype type_of(ncclDataType_t type) {
  return is_half(type)         ? MPI_UINT16_T
         : type == ncclFloat32 ? MPI_FLOAT
         : type == ncclFloat64 ? MPI_DOUBLE
         : type == ncclInt32   ? MPI_INT32_T
                               : MPI_INT64_T;
}

std::size_t size_of(ncclDataType_t type) {
  if (is_half(type)) return 2;
  return type == ncclFloat32 || type == ncclInt32 ? 4 : 8;
}

MPI_Op op_of(ncclRedOp_t op) { return op == ncclSum ? MPI_SUM : op == ncclMax ? MPI_MAX : MPI_MIN; }

/// Submits a call that reads `count` elements. Calls start(input, request) with a copy of them,
/// which is made when the call starts, because MPI forbids input and output to overlap.
template <class Start>
ncclResult_t submit_copied(const char* function, cudaStream_t stream, const void* in,
                           std::size_t count, ncclDataType_t type, Start start) {
  const auto copy = std::make_shared<std::vector<char>>(count * size_of(type));
  return submit(
      function, stream,
      [=, memory = copy.get()](Requests& requests) {
        if (!memory->empty()) std::memcpy(memory->data(), in, memory->size());
        start(memory->data(), &requests.emplace_back());
      },
      copy);
}

}  // namespace

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  int rank = 0, size = 1;
};

void* tessera::kernel_stream() { return &kernels; }

namespace tessera::test {

NcclFaults& nccl_faults() {
  static NcclFaults faults;
  return faults;
}

void launch_kernel() { ++kernels.added; }
void finish_kernels() { kernels.finished = kernels.added; }

}  // namespace tessera::test

// NOLINTBEGIN: names of CUDA and NCCL
extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  *stream = reinterpret_cast<cudaStream_t>(streams.emplace_back(new Stream));
  return cuda_result_of("cudaStreamCreateWithFlags");
}
/// MPI may still write to the memory of an unfinished call.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(streams, stream_of(stream));
  if (stream_of(stream)->queue.empty()) delete stream_of(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cuda_result_of("cudaEventCreateWithFlags");
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *reinterpret_cast<Event*>(event) = {stream_of(stream), stream_of(stream)->added};
  return cuda_result_of("cudaEventRecord");
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  stream_of(stream)->next_waits_for = *reinterpret_cast<Event*>(event);
  return cuda_result_of("cudaStreamWaitEvent");
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (fails("cudaEventQuery")) return cudaErrorUnknown;
  const bool is_late = nccl_faults().late_queries > 0;
  if (is_late)
    --nccl_faults().late_queries;
  else
    for (Stream* const stream : streams) stream->progress();
  if (!is_late && reinterpret_cast<Event*>(event)->has_passed()) return cudaSuccess;
  return last_error = cudaErrorNotReady;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "an error of the stand-in"; }

/// The world rank of the caller, and the number of its calls.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int asked = 0;
  int values[2] = {0, asked++};
  MPI_Comm_rank(MPI_COMM_WORLD, values);
  std::memcpy(id->internal, values, sizeof values);
  return fails("ncclGetUniqueId") ? ncclSystemError : ncclSuccess;
}
/// The ranks send their world ranks to the first one, and receive those of all.
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  int values[2];
  std::memcpy(values, id.internal, sizeof values);
  const int root = values[0], tag = 1000 + values[1] % 30000;
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  std::vector<int> members(static_cast<std::size_t>(size));
  if (rank == 0) {
    members[0] = me;
    for (int i = 1; i < size; ++i) {
      int member[2];
      MPI_Recv(member, 2, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      members[static_cast<std::size_t>(member[0])] = member[1];
    }
    for (int i = 1; i < size; ++i)
      MPI_Send(members.data(), size, MPI_INT, members[static_cast<std::size_t>(i)], tag,
               MPI_COMM_WORLD);
  } else {
    const int mine[2] = {rank, me};
    MPI_Send(mine, 2, MPI_INT, root, tag, MPI_COMM_WORLD);
    MPI_Recv(members.data(), size, MPI_INT, root, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Group world, ranks;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, size, members.data(), &ranks);
  *comm = new ncclComm{MPI_COMM_NULL, rank, size};
  MPI_Comm_create_group(MPI_COMM_WORLD, ranks, tag, &(*comm)->ranks);
  MPI_Group_free(&ranks);
  MPI_Group_free(&world);
  return result_of("ncclCommInitRank");
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  MPI_Comm_free(&comm->ranks);
  delete comm;
  return ncclSuccess;
}
/// Leaks memory that other ranks may still use.
ncclResult_t ncclCommAbort(ncclComm_t) {
  ++nccl_faults().aborts;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = static_cast<ncclResult_t>(nccl_faults().async_error);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error of the stand-in"; }
const char* ncclGetLastError(ncclComm_t) { return "its detail"; }
ncclResult_t ncclGetVersion(int* version) {
  *version = 21703;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  if (fails("ncclGroupStart")) return ncclSystemError;
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0) return ncclSuccess;
  Work work = std::exchange(group.work, {});
  const ncclResult_t result = result_of("ncclGroupEnd");
  if (result != ncclSystemError && !work.calls.empty()) group.stream->add(std::move(work));
  return result;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit_copied("ncclAllReduce", stream, in, count, type,
                       [=](const char* copy, MPI_Request* request) {
                         MPI_Iallreduce(copy, out, static_cast<int>(count), type_of(type),
                                        op_of(op), comm->ranks, request);
                       });
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return submit("ncclBroadcast", stream, [=](Requests& requests) {
    if (comm->rank == root && in != out) std::memmove(out, in, count * size_of(type));
    MPI_Ibcast(out, static_cast<int>(count), type_of(type), root, comm->ranks,
               &requests.emplace_back());
  });
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return submit_copied(
      "ncclReduce", stream, in, count, type, [=](const char* copy, MPI_Request* request) {
        MPI_Ireduce(copy, comm->rank == root ? out : nullptr, static_cast<int>(count),
                    type_of(type), op_of(op), root, comm->ranks, request);
      });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit_copied("ncclReduceScatter", stream, in,
                       count * static_cast<std::size_t>(comm->size), type,
                       [=](const char* copy, MPI_Request* request) {
                         MPI_Ireduce_scatter_block(copy, out, static_cast<int>(count),
                                                   type_of(type), op_of(op), comm->ranks, request);
                       });
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit_copied(
      "ncclAllGather", stream, in, count, type, [=](const char* copy, MPI_Request* request) {
        MPI_Iallgather(copy, static_cast<int>(count), type_of(type), out, static_cast<int>(count),
                       type_of(type), comm->ranks, request);
      });
}
ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return submit("ncclSend", stream, [=](Requests& requests) {
    MPI_Isend(in, static_cast<int>(count), type_of(type), peer, 0, comm->ranks,
              &requests.emplace_back());
  });
}
ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return submit("ncclRecv", stream, [=](Requests& requests) {
    MPI_Irecv(out, static_cast<int>(count), type_of(type), peer, 0, comm->ranks,
              &requests.emplace_back());
  });
}

}  // extern "C"
// NOLINTEND
