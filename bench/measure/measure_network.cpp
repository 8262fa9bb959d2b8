// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <tessera/base/for_each.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/predict/wire_model.hpp>
#include <tessera/tensor/topology.hpp>

#include "measure/machine_parts.hpp"
#include "measure/machine_speed.hpp"

namespace tessera::bench {
namespace {

constexpr Size short_call = 2;  // elements
constexpr Size middle_call = Size{1} << 13;
constexpr double middle_bytes = static_cast<double>(middle_call) * sizeof(float);  // 32 KiB
constexpr Size long_call = Size{1} << 21;
constexpr double long_bytes = static_cast<double>(long_call) * sizeof(float);  // 8 MiB
constexpr Size hidden_call = Size{1} << 18;

/// Returns the seconds of an all-reduce of values that have just been written, as gradients in a
/// step: the cache lines that another rank has read must be invalidated first.
double all_reduce_seconds(const Communicator& all, const Communicator& group, Size elements,
                          Size times) {
  const Vector<float> v("tessera::bench::reduced", elements);
  const auto write = [&] {
    for_each(
        "tessera::bench::write", elements, KOKKOS_LAMBDA(Size i) { v(i) = 1; });
  };
  const double writing = typical_seconds(all, times, write);
  const double both = typical_seconds(all, times, [&] { write(), group.all_reduce(v); });
  return std::max(both - writing, both / 2);
}

/// Returns the rounds of a short all-reduce.
double doublings(const Communicator& group) {
  return fewest_rounds(Operation::barrier, group.size());
}

double latency_of(const Communicator& all, const Communicator& group) {
  return all_reduce_seconds(all, group, short_call, 100) / doublings(group);
}

/// Returns the seconds that a message above the eager limit takes longer.
double rendezvous_of(const Communicator& all, const Communicator& group,
                     const NetworkLevel& level) {
  const double message = all_reduce_seconds(all, group, middle_call, 100) / doublings(group) -
                         middle_bytes / level.bytes_per_second;
  return std::max(0.0, message - level.latency_seconds);
}

/// Returns the bytes per second that each rank of a group sends, from the time of a long call
/// without its latency.
double all_reduce_rate(const Communicator& all, const Communicator& group, double latency) {
  return rate_beyond(wire_factor(Operation::all_reduce, group.size()) * long_bytes,
                     all_reduce_seconds(all, group, long_call, 5),
                     fewest_rounds(Operation::all_reduce, group.size()) * latency);
}

NetworkLevel measure_node(const Communicator& all, const Communicator& node) {
  const double latency = latency_of(all, node);
  NetworkLevel level{"node", node.size(), latency, all_reduce_rate(all, node, latency)};
  level.rendezvous_seconds = rendezvous_of(all, node, level);
  return level;
}

/// Returns the seconds of simultaneous messages from each rank to the next one of its group, in
/// both directions through each link. Sends start before receives: Open MPI requests the data of a
/// message through the connection of the other direction, where the request would wait behind the
/// data of a message in flight.
double shift_seconds(const Communicator& all, const Communicator& group, Size times) {
  const Vector<float> out("tessera::bench::sent", long_call), in("tessera::bench::got", long_call);
  const int me = group.rank(), n = group.size();
  return typical_seconds(all, times, [&] {
    Request sent = group.isend(out, (me + 1) % n, 0);
    group.receive(in, (me + n - 1) % n, 0);
    sent.wait();
  });
}

/// Measures the links between nodes. `group` has one rank of each node, and all groups send at
/// once, so that the `sharing` ranks of a node share its link. Its rate comes from messages,
/// because the rate of all-reduces depends on the algorithm of the MPI library. NCCL carries no
/// messages.
NetworkLevel measure_links(const Communicator& all, const Communicator& group, Size sharing) {
  const double latency = latency_of(all, group);
  const double rate = group.backend().backend == Backend::nccl
                          ? all_reduce_rate(all, group, latency)
                          : rate_beyond(long_bytes, shift_seconds(all, group, 5), latency);
  NetworkLevel level{"cluster", all.size(), latency, rate};
  level.rendezvous_seconds = rendezvous_of(all, group, level);
  level.bytes_per_second *= static_cast<double>(sharing);
  return level;
}

}  // namespace

double rate_beyond(double bytes, double seconds, double overhead) {
  return bytes / (seconds - std::min(overhead, seconds / 2));
}

double measure_overlap(const Communicator& ranks) {
  const Size n = 512;
  const Matrix<float> a("tessera::bench::a", n, n), b("tessera::bench::b", n, n);
  const Vector<float> v("tessera::bench::reduced", hidden_call);
  const Gemm<float> gemm(MatmulPrecision::strict, {});
  const auto multiply = [&](Size times) {
    for (Size i = 0; i < times; ++i) gemm(Trans::no, Trans::no, a, a, 0, b);
  };
  const double call = typical_seconds(ranks, 10, [&] { ranks.all_reduce(v); });
  const double one = typical_seconds(ranks, 10, [&] { multiply(1); });
  const Size times = std::clamp<Size>(static_cast<Size>(call / one), 1, 100);
  const double products = typical_seconds(ranks, 10, [&] { multiply(times); });
  const double both = typical_seconds(ranks, 10, [&] {
    Request request = ranks.iall_reduce(v);
    multiply(times);
    request.wait();
  });
  return std::clamp((call + products - both) / std::min(call, products), 0.0, 1.0);
}

std::vector<NetworkLevel> measure_network(const Communicator& ranks,
                                          const std::vector<Size>& node_of_rank) {
  if (ranks.size() == 1) return {};
  const Topology topology(node_of_rank);
  if (!topology.per_node()) return {measure_node(ranks, ranks)};
  const Size per_node = *topology.per_node();
  const auto me = static_cast<std::size_t>(ranks.rank());
  const int node = static_cast<int>(node_of_rank[me]);
  const auto place = static_cast<int>(
      std::count(node_of_rank.begin(), node_of_rank.begin() + ranks.rank(), node_of_rank[me]));
  std::vector<NetworkLevel> levels;
  if (per_node > 1) levels.push_back(measure_node(ranks, ranks.split(node, place, "node")));
  if (topology.num_nodes() > 1)
    levels.push_back(measure_links(ranks, ranks.split(place, node, "cluster"), per_node));
  return levels;
}

}  // namespace tessera::bench
