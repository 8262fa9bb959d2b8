// SPDX-License-Identifier: Apache-2.0
//
// Where Kokkos has no CUDA device this is compiled, so that it stays correct, and never used.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <tessera/base/error.hpp>
#include <tessera/base/mpi_error.hpp>
#include <tessera/comm/detail/transport.hpp>

namespace tessera {
namespace {

void check_cuda(cudaError_t code, const char* function, const Site& site) {
  if (code == cudaSuccess) return;
  throw Error(ExitCode::communication, "{} at {} failed: {}", function, to_string(site),
              cudaGetErrorString(code));
}

void check_nccl(ncclResult_t code, const char* function, const Site& site) {
  if (code == ncclSuccess) return;
  throw Error(ExitCode::communication, "{} at {} failed: {}", function, to_string(site),
              ncclGetErrorString(code));
}

/// In the order of the enumerators.
constexpr std::array nccl_types{ncclFloat32, ncclFloat64,  ncclInt32,
                                ncclInt64,   ncclBfloat16, ncclFloat16};
constexpr std::array nccl_ops{ncclSum, ncclMax, ncclMin};

ncclDataType_t nccl_type(DType type) { return nccl_types[static_cast<std::size_t>(type)]; }
ncclRedOp_t nccl_op(ReduceOp op) { return nccl_ops[static_cast<std::size_t>(op)]; }

std::size_t to_count(Size count) { return static_cast<std::size_t>(count); }

/// Calls between construction and finish() start together.
class NcclGroup {
 public:
  explicit NcclGroup(const Site& site) : site_(site) {
    check_nccl(ncclGroupStart(), "ncclGroupStart", site);
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup() {
    if (open_) static_cast<void>(ncclGroupEnd());
  }
  void finish() {
    open_ = false;
    check_nccl(ncclGroupEnd(), "ncclGroupEnd", site_);
  }

 private:
  Site site_;
  bool open_ = true;
};

/// A point on a stream.
class Event {
 public:
  Event(cudaStream_t stream, const Site& site) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
               "cudaEventCreateWithFlags", site);
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord", site);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
  }
  bool has_passed(const Site& site) const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check_cuda(state, "cudaEventQuery", site);
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(std::unique_ptr<Transport> host, MPI_Comm comm, const CommOptions& options,
                const Site& site)
      : host_(std::move(host)), timeout_(options.timeout_seconds) {
    check_mpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank", site);
    check_mpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size", site);
    ncclUniqueId id{};
    if (rank_ == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", site);
    check_mpi(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, comm), "MPI_Bcast", site);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags", site);
    check_nccl(ncclCommInitRank(&comm_, size_, id, rank_), "ncclCommInitRank", site);
  }
  ~NcclTransport() override {
    if (comm_ != nullptr) static_cast<void>(ncclCommDestroy(comm_));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  void run(const Call& call) override {
    if (!takes(call)) return host_->run(call);
    issue(call);
    const Event end(stream_, call.site);
    wait_for(end, call.site);
  }
  std::unique_ptr<PendingCall> start(const Call& call) override;

  /// Polls, as a call that a lost rank holds up never returns by itself.
  void wait_for(const Event& end, const Site& site) {
    const auto began = std::chrono::steady_clock::now();
    while (!has_passed(end, site)) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - began;
      // The watchdog comes first: it can name the ranks that are missing.
      if (timeout_ > 0 && waited.count() > timeout_ + std::min(10.0, timeout_)) {
        give_up(site, fmt::format("it has waited {:.1f} s", waited.count()));
      }
      std::this_thread::yield();
    }
  }
  bool has_passed(const Event& end, const Site& site) {
    if (comm_ == nullptr) give_up(site, "an earlier call has failed");
    if (end.has_passed(site)) return true;
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", site);
    if (state != ncclSuccess && state != ncclInProgress) give_up(site, ncclGetErrorString(state));
    return false;
  }

 private:
  /// NCCL knows no tags, so messages stay with the other transport.
  static bool takes(const Call& call) {
    return !is_point_to_point(call.operation) && call.operation != Operation::barrier &&
           is_device_memory(call.in) && is_device_memory(call.out);
  }

  [[noreturn]] void give_up(const Site& site, const std::string& why) {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(comm_, nullptr)));
    throw Error(ExitCode::communication, "NCCL call at {}: {}", to_string(site), why);
  }

  void issue(const Call& call) {
    if (comm_ == nullptr) give_up(call.site, "an earlier call has failed");
    const ncclDataType_t type = nccl_type(call.in.type);
    switch (call.operation) {
      case Operation::all_reduce:
        return check_nccl(ncclAllReduce(call.in.data, call.out.data, to_count(call.in.count), type,
                                        nccl_op(call.op), comm_, stream_),
                          "ncclAllReduce", call.site);
      case Operation::broadcast:
        return check_nccl(ncclBroadcast(call.in.data, call.out.data, to_count(call.in.count), type,
                                        call.peer, comm_, stream_),
                          "ncclBroadcast", call.site);
      case Operation::reduce_scatter:
        return reduce_scatter(call, type);
      case Operation::all_gather:
        return all_gather(call, type);
      case Operation::all_to_all:
        return all_to_all(call, type);
      default:
        return;
    }
  }

  // Uneven shares: a group of reductions or broadcasts, which NCCL starts as one kernel, along its
  // rings and trees. Sends would move every share from each rank to each other one by itself.

  void reduce_scatter(const Call& call, ncclDataType_t type) {
    if (is_even(call, size_)) {
      return check_nccl(ncclReduceScatter(call.in.data, call.out.data, to_count(call.out.count),
                                          type, nccl_op(call.op), comm_, stream_),
                        "ncclReduceScatter", call.site);
    }
    NcclGroup group(call.site);
    for (int root = 0; root < size_; ++root) {
      const Range share = share_of(call, size_, root);
      if (share.count == 0) continue;
      check_nccl(ncclReduce(call.in.at(share.begin), call.out.data, to_count(share.count), type,
                            nccl_op(call.op), root, comm_, stream_),
                 "ncclReduce", call.site);
    }
    group.finish();
  }

  void all_gather(const Call& call, ncclDataType_t type) {
    if (is_even(call, size_)) {
      return check_nccl(
          ncclAllGather(call.in.data, call.out.data, to_count(call.in.count), type, comm_, stream_),
          "ncclAllGather", call.site);
    }
    NcclGroup group(call.site);
    for (int root = 0; root < size_; ++root) {
      const Range share = share_of(call, size_, root);
      if (share.count == 0) continue;
      void* const target = call.out.at(share.begin);
      check_nccl(ncclBroadcast(root == rank_ ? call.in.data : target, target, to_count(share.count),
                               type, root, comm_, stream_),
                 "ncclBroadcast", call.site);
    }
    group.finish();
  }

  void all_to_all(const Call& call, ncclDataType_t type) {
    NcclGroup group(call.site);
    Size sent = 0, received = 0;
    for (int peer = 0; peer < size_; ++peer) {
      const Size out = call.counts[peer];
      const Size in = call.receive_counts[peer];
      if (out > 0) {
        check_nccl(ncclSend(call.in.at(sent), to_count(out), type, peer, comm_, stream_),
                   "ncclSend", call.site);
      }
      if (in > 0) {
        check_nccl(ncclRecv(call.out.at(received), to_count(in), type, peer, comm_, stream_),
                   "ncclRecv", call.site);
      }
      sent += out;
      received += in;
    }
    group.finish();
  }

  std::unique_ptr<Transport> host_;
  double timeout_;
  int rank_ = 0;
  int size_ = 1;
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;

  friend class NcclPending;
};

class NcclPending final : public PendingCall {
 public:
  NcclPending(NcclTransport& transport, const Site& site)
      : transport_(transport), site_(site), end_(transport.stream_, site) {}
  bool advance(bool to_the_end) override {
    if (to_the_end) transport_.wait_for(end_, site_);
    return to_the_end || transport_.has_passed(end_, site_);
  }

 private:
  NcclTransport& transport_;
  Site site_;
  Event end_;
};

std::unique_ptr<PendingCall> NcclTransport::start(const Call& call) {
  if (!takes(call)) return host_->start(call);
  issue(call);
  return std::make_unique<NcclPending>(*this, call.site);
}

}  // namespace

std::optional<std::string> nccl_version() {
  return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
}

std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm comm,
                                               const CommOptions& options, const Site& site) {
  return std::make_unique<NcclTransport>(std::move(host), comm, options, site);
}

}  // namespace tessera
