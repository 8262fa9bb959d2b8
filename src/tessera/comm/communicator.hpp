// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

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

/// Memory in which a non-blocking reduce_scatter receives: a contiguous View of at least
/// reduce_scatter_scratch() elements (scratch.hpp), which the request owns until the call has
/// finished. Without one the call takes memory of the transport.
struct Scratch {
  Scratch() = default;
  template <class V>
  requires(Kokkos::is_view_v<V>) explicit Scratch(const V& v) : buffer(buffer_of(v)), view(v) {
    static_assert(!std::is_const_v<typename V::value_type>, "the call writes the scratch");
  }
  std::optional<Buffer> buffer{};
  std::any view{};
};

/// The number of elements of each rank's share, the same on all ranks. Nothing means the balanced
/// split.
using ShareCounts = std::optional<std::span<const Size>>;

/// A group of ranks that exchange Views. A handle, cheap to copy. Element types are float, double,
/// int32 and int64. BFloat16 and Float16 can be moved and summed: each addition rounds, so their
/// sums depend on the order.
///
/// Views are contiguous, in any layout and memory space; elements move in the order of memory.
/// Every rank makes the same collective calls in the same order. Messages match by rank and tag,
/// and do not interfere with collectives. With one rank, `in` is copied to `out`, and the ledger
/// records nothing.
///
/// Functions that begin with i do not block. All throw Error (communication) with operation, axis
/// and call site for Views, extents and ranks that do not fit, and for errors of the library. Not
/// thread-safe.
class Communicator {
 public:
  /// Makes a communicator of all ranks, axis "world". Collective. MPI must be running. The watchdog
  /// names missing ranks only with MPI_THREAD_MULTIPLE. Throws Error (usage) for invalid options.
  static Communicator world(const CommOptions& options = {}, Site site = Site::current());

  /// Makes a communicator of the ranks with the same color >= 0, in the order of (key, rank).
  /// Collective. `axis` is its name in the ledger and in messages.
  Communicator split(int color, int key, std::string axis, Site site = Site::current()) const;
  /// The same with group_of(rank) as color, for any rank, and in the order of ranks. All ranks must
  /// pass the same function.
  Communicator split(const std::function<int(int rank)>& group_of, std::string axis,
                     Site site = Site::current()) const;
  /// Makes a communicator of this rank alone. Not collective.
  Communicator alone(std::string axis) const;

  int rank() const;
  int size() const;
  /// Returns true if the other ranks do not exist (CommOptions::fake).
  bool is_fake() const;
  /// Returns true on the rank that reports for all.
  bool is_first() const { return rank() == 0 || is_fake(); }
  const std::string& axis() const;
  /// Shared by all communicators that come from one world.
  Ledger& ledger() const;
  const CommOptions& options() const;
  /// The library that was chosen for device Views, and the reason.
  const BackendChoice& backend() const;

  /// Returns a handle of the same ranks whose sums of floating-point numbers are added in a tree of
  /// these terms, so that the order of additions depends neither on the library nor on the
  /// transport. All ranks must use it, with equal nodes, for the same calls. Throws Error
  /// (communication) unless there are terms for every rank. Without terms, each rank has one node:
  /// its part of the balanced split of the smallest tree of at least as many places as ranks.
  Communicator in_tree(TreeTerms terms = {}, Site site = Site::current()) const;

  /// v becomes the elementwise sum, maximum or minimum of the v of all ranks.
  template <class V>
  void all_reduce(const V& v, ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    run(on_view<V>(Operation::all_reduce, v, site, op));
  }
  template <class V>
  Request iall_reduce(const V& v, ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    return start(on_view<V>(Operation::all_reduce, v, site, op), v);
  }

  /// out becomes this rank's share of the elementwise reduction of the `in` of all ranks.
  template <class In, class Out>
  void reduce_scatter(const In& in, const Out& out, ReduceOp op = ReduceOp::sum,
                      ShareCounts counts = {}, Site site = Site::current()) const {
    run(on_views(Operation::reduce_scatter, in, out, site, counts, op));
  }
  template <class In, class Out>
  Request ireduce_scatter(const In& in, const Out& out, ReduceOp op = ReduceOp::sum,
                          ShareCounts counts = {}, const Scratch& scratch = {},
                          Site site = Site::current()) const {
    Call call = on_views(Operation::reduce_scatter, in, out, site, counts, op);
    call.scratch = scratch.buffer;
    return start(call, std::pair(in, out), scratch);
  }
  /// In place: this rank's share of v becomes its share of the reduction. The rest of v is
  /// undefined after the call. Shares are the balanced split of the extent of v.
  template <class V>
  void reduce_scatter(const V& v, ReduceOp op = ReduceOp::sum, Site site = Site::current()) const {
    run(on_own_share(v, site, op));
  }
  template <class V>
  Request ireduce_scatter(const V& v, ReduceOp op = ReduceOp::sum, const Scratch& scratch = {},
                          Site site = Site::current()) const {
    Call call = on_own_share(v, site, op);
    call.scratch = scratch.buffer;
    return start(call, v, scratch);
  }

  /// out becomes the concatenated `in` of all ranks. `in` may be this rank's share inside of out.
  template <class In, class Out>
  void all_gather(const In& in, const Out& out, ShareCounts counts = {},
                  Site site = Site::current()) const {
    run(on_views(Operation::all_gather, in, out, site, counts));
  }
  template <class In, class Out>
  Request iall_gather(const In& in, const Out& out, ShareCounts counts = {},
                      Site site = Site::current()) const {
    return start(on_views(Operation::all_gather, in, out, site, counts), std::pair(in, out));
  }

  /// v becomes the v of the root.
  template <class V>
  void broadcast(const V& v, int root, Site site = Site::current()) const {
    run(on_view<V>(Operation::broadcast, v, site, ReduceOp::sum, root));
  }

  /// Sends the next send_counts[i] elements of `in` to each rank i, and receives the next
  /// receive_counts[i] elements of `out` from each rank i.
  template <class In, class Out>
  void all_to_all(const In& in, std::span<const Size> send_counts, const Out& out,
                  std::span<const Size> receive_counts, Site site = Site::current()) const {
    Call call = on_views(Operation::all_to_all, in, out, site, send_counts);
    call.receive_counts = receive_counts;
    run(call);
  }

  /// Sends v to another rank, which receives a View of the same extent and type with the same tag.
  /// It may or may not wait until the message is received.
  template <class V>
  void send(const V& v, int destination, int tag, Site site = Site::current()) const {
    run(on_view<const V>(Operation::send, v, site, ReduceOp::sum, destination, tag));
  }
  template <class V>
  Request isend(const V& v, int destination, int tag, Site site = Site::current()) const {
    return start(on_view<const V>(Operation::send, v, site, ReduceOp::sum, destination, tag), v);
  }
  template <class V>
  void receive(const V& v, int source, int tag, Site site = Site::current()) const {
    run(on_view<V>(Operation::receive, v, site, ReduceOp::sum, source, tag));
  }
  template <class V>
  Request ireceive(const V& v, int source, int tag, Site site = Site::current()) const {
    return start(on_view<V>(Operation::receive, v, site, ReduceOp::sum, source, tag), v);
  }

  /// Returns once every rank has called it.
  void barrier(Site site = Site::current()) const;

 private:
  explicit Communicator(std::shared_ptr<detail::CommunicatorState> state);
  friend struct detail::CommunicatorState;

  template <class V>
  static Call on_view(Operation operation, const V& v, const Site& site,
                      ReduceOp op = ReduceOp::sum, int peer = -1, int tag = 0) {
    static_assert(std::is_const_v<V> || !std::is_const_v<typename V::value_type>,
                  "the call writes this View: its elements must not be const");
    const Buffer buffer = buffer_of(v);
    return {operation, site, buffer, buffer, op, peer, tag};
  }

  /// A reduce_scatter of all of v, whose result is this rank's share of it.
  template <class V>
  Call on_own_share(const V& v, const Site& site, ReduceOp op) const {
    Call call = on_view<V>(Operation::reduce_scatter, v, site, op);
    const Range own = balanced_split(call.in.count, size(), rank());
    call.out = call.in.slice(own.begin, own.count);
    call.balanced = call.in_place = true;
    return call;
  }

  template <class In, class Out>
  static Call on_views(Operation operation, const In& in, const Out& out, const Site& site,
                       ShareCounts counts, ReduceOp op = ReduceOp::sum) {
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
            .counts = counts.value_or(std::span<const Size>())};
  }

  void run(const Call& call) const;
  /// The request owns `views` and `scratch` until the call has finished.
  Request start(const Call& call, std::any views, Scratch scratch = {}) const;
  /// Returns the call with the rows and in the order of sums of this handle.
  Call in_order(Call call) const;

  std::shared_ptr<detail::CommunicatorState> state_;
  std::shared_ptr<const SumTree> tree_;  ///< the order of sums; none: any
};

}  // namespace tessera
