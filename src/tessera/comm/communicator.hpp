// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <tessera/base/site.hpp>
#include <tessera/comm/buffer.hpp>
#include <tessera/comm/call.hpp>
#include <tessera/comm/comm_options.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/comm/request.hpp>

namespace tessera {

namespace detail {
struct CommunicatorState;
}

/// A View of the caller, contiguous, in which a reduce_scatter that is only started may receive. It
/// has at least as many elements as reduce_scatter_scratch (scratch.hpp) says, and is kept and left
/// alone until the call has finished, like the other Views.
template <class V>
struct Scratch {
  V view;
};
template <class V>
Scratch(V) -> Scratch<V>;

/// Elements of each rank's share, the same on all ranks; none: the balanced split.
using ShareCounts = std::optional<std::span<const Size>>;

/// A group of ranks that exchange Views of float, double, int32 or int64, and of BFloat16 or
/// Float16, which are only moved: their sums would depend on the order. A handle, cheap to copy.
///
/// Views are contiguous, in any layout and memory space; elements are moved in the order of memory.
/// Count and type come from the View. Every rank makes the same collective calls in the same order;
/// messages (send, receive) meet by rank and tag and never disturb collectives. With one rank
/// nothing is called and nothing recorded: `in` is copied to `out` where there are two Views.
///
/// Every operation exists as a blocking call and, with an i in front, as a Request. They throw
/// Error (communication) that names operation, axis and call site: for a View that is not
/// contiguous, extents that do not match, a rank out of range, or what the library reports.
/// One thread at a time.
class Communicator {
 public:
  /// All ranks of the program, axis "world". Collective. MPI must run; with MPI_THREAD_MULTIPLE the
  /// watchdog can name missing ranks. Throws Error (usage) for options that cannot be met.
  static Communicator world(const CommOptions& options = {}, Site site = Site::current());

  /// Ranks of the same color >= 0, in the order of (key, rank). Collective. `axis` names the result
  /// in the ledger and in messages.
  Communicator split(int color, int key, std::string axis, Site site = Site::current()) const;
  /// This rank by itself. Not collective.
  Communicator alone(std::string axis) const;

  int rank() const;
  int size() const;
  const std::string& axis() const;
  /// Shared by all communicators that come from one world.
  Ledger& ledger() const;
  const CommOptions& options() const;
  /// What `options().backend` has become, and why.
  const BackendChoice& backend() const;

  /// v = the elementwise sum (max, min) of every rank's v.
  template <class V>
  void all_reduce(const V& v, ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    run(in_place<V>(Operation::all_reduce, v, op, -1, 0, site));
  }
  template <class V>
  Request iall_reduce(const V& v, ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    return start(in_place<V>(Operation::all_reduce, v, op, -1, 0, site), v);
  }

  /// out (this rank's share) = its part of the elementwise sum of every rank's in (all shares).
  template <class In, class Out>
  void reduce_scatter(const In& in, const Out& out, ReduceOp op = ReduceOp::sum,
                      ShareCounts counts = {}, Site site = Site::current()) const {
    run(two_views(Operation::reduce_scatter, in, out, counts, {}, op, site));
  }
  template <class In, class Out>
  Request ireduce_scatter(const In& in, const Out& out, ReduceOp op = ReduceOp::sum,
                          ShareCounts counts = {}, Site site = Site::current()) const {
    return start(two_views(Operation::reduce_scatter, in, out, counts, {}, op, site), in, out);
  }
  /// In place: this rank's share of v, where it belongs = its part of the elementwise sum of every
  /// rank's v; the rest of v is undefined after that. Shares are the balanced split of v's extent.
  template <class V>
  void reduce_scatter(const V& v, ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    run(own_share_of(Operation::reduce_scatter, v, op, site));
  }
  template <class V>
  Request ireduce_scatter(const V& v, ReduceOp op = ReduceOp::sum,
                          Site site = Site::current()) const {
    return start(own_share_of(Operation::reduce_scatter, v, op, site), v);
  }
  /// The same two in memory of the caller: nothing else is taken, now or later.
  template <class In, class Out, class S>
  Request ireduce_scatter(const In& in, const Out& out, const Scratch<S>& scratch,
                          ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    return start(with(scratch, two_views(Operation::reduce_scatter, in, out, {}, {}, op, site)), in,
                 out, scratch.view);
  }
  template <class V, class S>
  Request ireduce_scatter(const V& v, const Scratch<S>& scratch, ReduceOp op = ReduceOp::sum,
                          Site site = Site::current()) const {
    return start(with(scratch, own_share_of(Operation::reduce_scatter, v, op, site)), v,
                 scratch.view);
  }

  /// out = every rank's in (its share), one after the other. In place: in is the part of out where
  /// the share belongs.
  template <class In, class Out>
  void all_gather(const In& in, const Out& out, ShareCounts counts = {},
                  Site site = Site::current()) const {
    run(two_views(Operation::all_gather, in, out, counts, {}, ReduceOp::sum, site));
  }
  template <class In, class Out>
  Request iall_gather(const In& in, const Out& out, ShareCounts counts = {},
                      Site site = Site::current()) const {
    return start(two_views(Operation::all_gather, in, out, counts, {}, ReduceOp::sum, site), in,
                 out);
  }

  /// v = the root's v.
  template <class V>
  void broadcast(const V& v, int root, Site site = Site::current()) const {
    run(in_place<V>(Operation::broadcast, v, ReduceOp::sum, root, 0, site));
  }
  template <class V>
  Request ibroadcast(const V& v, int root, Site site = Site::current()) const {
    return start(in_place<V>(Operation::broadcast, v, ReduceOp::sum, root, 0, site), v);
  }

  /// in is cut into send_counts[i] elements for each rank i; out receives receive_counts[i] from
  /// each rank i, one after the other.
  template <class In, class Out>
  void all_to_all(const In& in, std::span<const Size> send_counts, const Out& out,
                  std::span<const Size> receive_counts, Site site = Site::current()) const {
    run(two_views(Operation::all_to_all, in, out, send_counts, receive_counts, ReduceOp::sum,
                  site));
  }
  template <class In, class Out>
  Request iall_to_all(const In& in, std::span<const Size> send_counts, const Out& out,
                      std::span<const Size> receive_counts, Site site = Site::current()) const {
    return start(
        two_views(Operation::all_to_all, in, out, send_counts, receive_counts, ReduceOp::sum, site),
        in, out);
  }

  /// To another rank, which receives a View of the same extent and type with the same tag. May
  /// return before the message is received, or only then.
  template <class V>
  void send(const V& v, int destination, int tag, Site site = Site::current()) const {
    run(in_place<const V>(Operation::send, v, ReduceOp::sum, destination, tag, site));
  }
  template <class V>
  Request isend(const V& v, int destination, int tag, Site site = Site::current()) const {
    return start(in_place<const V>(Operation::send, v, ReduceOp::sum, destination, tag, site), v);
  }
  template <class V>
  void receive(const V& v, int source, int tag, Site site = Site::current()) const {
    run(in_place<V>(Operation::receive, v, ReduceOp::sum, source, tag, site));
  }
  template <class V>
  Request ireceive(const V& v, int source, int tag, Site site = Site::current()) const {
    return start(in_place<V>(Operation::receive, v, ReduceOp::sum, source, tag, site), v);
  }

  /// Returns when every rank has called it.
  void barrier(Site site = Site::current()) const;
  Request ibarrier(Site site = Site::current()) const;

 private:
  explicit Communicator(std::shared_ptr<detail::CommunicatorState> state);
  friend struct detail::CommunicatorState;

  template <class V>
  static Call in_place(Operation operation, const V& v, ReduceOp op, int peer, int tag,
                       const Site& site) {
    static_assert(std::is_const_v<V> || !std::is_const_v<typename V::value_type>,
                  "the call writes this View: its elements must not be const");
    const Buffer buffer = buffer_of(v);
    return {operation, site, buffer, buffer, op, peer, tag};
  }

  /// `in` is all of v, `out` the own share in it.
  template <class V>
  Call own_share_of(Operation operation, const V& v, ReduceOp op, const Site& site) const {
    Call call = in_place<V>(operation, v, op, -1, 0, site);
    const Range own = balanced_split(call.in.count, size(), rank());
    call.out = call.in.slice(own.begin, own.count);
    call.balanced = call.in_place = true;
    return call;
  }

  template <class In, class Out>
  static Call two_views(Operation operation, const In& in, const Out& out, ShareCounts counts,
                        std::span<const Size> receive_counts, ReduceOp op, const Site& site) {
    static_assert(std::is_same_v<typename In::non_const_value_type, typename Out::value_type>,
                  "both Views have the same element type, and that of `out` is not const");
    constexpr bool mixed = std::is_same_v<typename In::array_layout, Kokkos::LayoutLeft> !=
                           std::is_same_v<typename Out::array_layout, Kokkos::LayoutLeft>;
    static_assert(!(mixed && In::rank > 1 && Out::rank > 1),
                  "elements move in the order of memory: both Views need the same layout");
    return {.operation = operation,
            .site = site,
            .in = buffer_of(in),
            .out = buffer_of(out),
            .op = op,
            .balanced = !counts,
            .counts = counts.value_or(std::span<const Size>()),
            .receive_counts = receive_counts};
  }

  template <class S>
  static Call with(const Scratch<S>& scratch, Call call) {
    static_assert(!std::is_const_v<typename S::value_type>, "the call writes the scratch");
    call.scratch = buffer_of(scratch.view);
    return call;
  }

  void run(const Call& call) const;
  Request start(const Call& call, std::unique_ptr<detail::KeepAlive> views) const;
  template <class... Views>
  Request start(const Call& call, const Views&... views) const {
    return start(call, std::unique_ptr<detail::KeepAlive>(
                           std::make_unique<detail::KeepViews<Views...>>(views...)));
  }

  std::shared_ptr<detail::CommunicatorState> state_;
};

}  // namespace tessera
