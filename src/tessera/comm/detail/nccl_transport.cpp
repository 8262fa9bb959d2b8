// SPDX-License-Identifier: Apache-2.0
// Without a CUDA device in Kokkos, only tests compile this file, with a stand-in for NCCL.
#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/detail/transport.hpp>
#include <tessera/process/mpi_error.hpp>

namespace tessera {
namespace {

void check_cuda(cudaError_t code, const char* function, const Site& site) {
  if (code == cudaSuccess) return;
  throw Error(ExitCode::communication, "{} at {} failed: {}", function, to_string(site),
              cudaGetErrorString(code));
}

/// In the order of the enumerators.
constexpr std::array nccl_types{ncclFloat32, ncclFloat64,  ncclInt32,
                                ncclInt64,   ncclBfloat16, ncclFloat16};
constexpr std::array nccl_ops{ncclSum, ncclMax, ncclMin};

ncclDataType_t nccl_type(DType type) { return nccl_types[static_cast<std::size_t>(type)]; }
ncclRedOp_t nccl_op(ReduceOp op) { return nccl_ops[static_cast<std::size_t>(op)]; }

cudaStream_t kernels() { return static_cast<cudaStream_t>(kernel_stream()); }

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
    if (state == cudaErrorNotReady) {
      // Otherwise the next launch of a kernel would report it as an error.
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check_cuda(state, "cudaEventQuery", site);
    return true;
  }
  void hold_up(cudaStream_t stream, const Site& site) const {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent", site);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(std::unique_ptr<Transport> host, MPI_Comm ranks, const CommOptions& options,
                const Site& site)
      : host_(std::move(host)), ranks_(ranks), timeout_(options.timeout_seconds) {
    check_mpi(MPI_Comm_rank(ranks, &rank_), "MPI_Comm_rank", site);
    check_mpi(MPI_Comm_size(ranks, &size_), "MPI_Comm_size", site);
  }
  /// During an exception the other ranks may never finish the calls that this rank has started.
  ~NcclTransport() override {
    if (std::uncaught_exceptions() > 0) abort();
    if (comm_ != nullptr) static_cast<void>(ncclCommDestroy(comm_));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  void connect(const Site& site) override {
    if (is_connected_) return;
    is_connected_ = true;
    struct {
      ncclUniqueId id{};
      ncclResult_t made = ncclSuccess;
    } first;
    if (rank_ == 0) first.made = ncclGetUniqueId(&first.id);
    check_mpi(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, ranks_), "MPI_Bcast", site);
    check(first.made, "ncclGetUniqueId", site);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags", site);
    check(ncclCommInitRank(&comm_, size_, first.id, rank_), "ncclCommInitRank", site);
  }

  void run(const Call& call) override {
    if (!takes(call)) return host_->run(call);
    issue(call);
    wait_for(Event(stream_, call.site), call.site);
  }
  std::unique_ptr<PendingCall> start(const Call& call) override;

  /// Polls, because a call with a lost rank never returns. Lets MPI make progress: another rank may
  /// be late because it waits for a message of this one.
  void wait_for(const Event& end, const Site& site) {
    const Timer timer;
    while (!has_passed(end, site)) {
      // The watchdog reports earlier, because it can name the missing ranks.
      if (timeout_ > 0 && timer.seconds() > timeout_ + std::min(10.0, timeout_))
        give_up("NCCL call", site, fmt::format("it has waited {:.1f} s", timer.seconds()));
      int found = 0;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ranks_, &found, MPI_STATUS_IGNORE),
                "MPI_Iprobe", site);
      std::this_thread::yield();
    }
  }
  bool has_passed(const Event& end, const Site& site) {
    if (comm_ == nullptr) give_up("NCCL call", site, "an earlier call has failed");
    const bool passed = end.has_passed(site);
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", site);
    check(state, "NCCL call", site);
    return passed;
  }
  /// Ends the calls in flight. The kernels of an unfinished call would occupy the device, and
  /// freeing memory would wait for them.
  void abort() noexcept {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(comm_, nullptr)));
  }

 private:
  /// NCCL has no tags, so messages use the other transport.
  static bool takes(const Call& call) {
    // A tree of sums is added on the host.
    return call.tree == nullptr && !is_point_to_point(call.operation) &&
           call.operation != Operation::barrier && is_device_memory(call.in) &&
           is_device_memory(call.out);
  }

  [[noreturn]] void give_up(const char* what, const Site& site, const std::string& why) {
    abort();
    throw Error(ExitCode::communication, "{} at {}: {}", what, to_string(site), why);
  }

  void check(ncclResult_t code, const char* function, const Site& site) {
    if (code == ncclSuccess) return;
    const char* const detail = ncclGetLastError(comm_);
    const bool says_more = detail != nullptr && *detail != '\0';
    give_up(function, site,
            fmt::format("{}{}{}", ncclGetErrorString(code), says_more ? ": " : "",
                        says_more ? detail : ""));
  }

  /// The call runs after the kernels launched before it. The host does not wait.
  void issue(const Call& call) {
    connect(call.site);
    if (comm_ == nullptr) give_up("NCCL call", call.site, "an earlier call has failed");
    Event(kernels(), call.site).hold_up(stream_, call.site);
    const ncclDataType_t type = nccl_type(call.in.type);
    switch (call.operation) {
      case Operation::all_reduce:
        return check(ncclAllReduce(call.in.data, call.out.data, call.in.count, type,
                                   nccl_op(call.op), comm_, stream_),
                     "ncclAllReduce", call.site);
      case Operation::broadcast:
        return check(ncclBroadcast(call.in.data, call.out.data, call.in.count, type, call.peer,
                                   comm_, stream_),
                     "ncclBroadcast", call.site);
      case Operation::reduce_scatter:
        return reduce_scatter(call, type);
      case Operation::all_gather:
        return all_gather(call, type);
      case Operation::all_to_all:
        return all_to_all(call, type);
      case Operation::send:  // takes() rejects these
      case Operation::receive:
      case Operation::barrier:
      case Operation::split:
      case Operation::agree:
        return;
    }
  }

  /// Starts all calls that f makes as one group.
  template <class F>
  void together(const Site& site, const F& f) {
    check(ncclGroupStart(), "ncclGroupStart", site);
    const char* failed = nullptr;
    ncclResult_t why = ncclSuccess;
    f([&](ncclResult_t code, const char* function) {
      if (failed != nullptr || code == ncclSuccess) return;
      failed = function;
      why = code;
    });
    const ncclResult_t end = ncclGroupEnd();
    if (failed != nullptr) check(why, failed, site);
    check(end, "ncclGroupEnd", site);
  }

  /// Calls start(add, root, share) for each share that is not empty, as one group: NCCL runs it as
  /// one kernel along its rings and trees. With sends, every rank would send to every other rank.
  template <class F>
  void for_shares(const Call& call, const F& start) {
    together(call.site, [&](const auto& add) {
      for (int root = 0; root < size_; ++root) {
        const Range share = share_of(call, size_, root);
        if (share.count > 0) start(add, root, share);
      }
    });
  }

  void reduce_scatter(const Call& call, ncclDataType_t type) {
    if (is_even(call, size_))
      return check(ncclReduceScatter(call.in.data, call.out.data, call.out.count, type,
                                     nccl_op(call.op), comm_, stream_),
                   "ncclReduceScatter", call.site);
    for_shares(call, [&](const auto& add, int root, Range share) {
      add(ncclReduce(call.in.at(share.begin), call.out.data, share.count, type, nccl_op(call.op),
                     root, comm_, stream_),
          "ncclReduce");
    });
  }

  void all_gather(const Call& call, ncclDataType_t type) {
    if (is_even(call, size_))
      return check(ncclAllGather(call.in.data, call.out.data, call.in.count, type, comm_, stream_),
                   "ncclAllGather", call.site);
    for_shares(call, [&](const auto& add, int root, Range share) {
      void* const target = call.out.at(share.begin);
      add(ncclBroadcast(root == rank_ ? call.in.data : target, target, share.count, type, root,
                        comm_, stream_),
          "ncclBroadcast");
    });
  }

  void all_to_all(const Call& call, ncclDataType_t type) {
    together(call.site, [&](const auto& add) {
      Size sent = 0, received = 0;
      for (int peer = 0; peer < size_; ++peer) {
        const Size out = call.counts[peer];
        const Size in = call.receive_counts[peer];
        if (out > 0) add(ncclSend(call.in.at(sent), out, type, peer, comm_, stream_), "ncclSend");
        if (in > 0)
          add(ncclRecv(call.out.at(received), in, type, peer, comm_, stream_), "ncclRecv");
        sent += out;
        received += in;
      }
    });
  }

  std::unique_ptr<Transport> host_;
  MPI_Comm ranks_;
  double timeout_;
  int rank_ = 0;
  int size_ = 1;
  bool is_connected_ = false;  ///< or has failed to connect
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
  void abandon() noexcept override { transport_.abort(); }

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
  int version = NCCL_VERSION_CODE;
  static_cast<void>(ncclGetVersion(&version));  // of the library at run time
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<Transport> make_nccl_transport(std::unique_ptr<Transport> host, MPI_Comm ranks,
                                               const CommOptions& options, const Site& site) {
  return std::make_unique<NcclTransport>(std::move(host), ranks, options, site);
}

}  // namespace tessera
