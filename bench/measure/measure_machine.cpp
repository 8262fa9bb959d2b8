// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/predict/wire_model.hpp>
#include <tessera/process/progress.hpp>

#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

constexpr Size swept = Size{1} << 25;  // elements: 256 MiB of both Views, beyond most caches
constexpr Size smallest_cache = Size{1} << 18, largest_cache = Size{1} << 26;  // bytes
constexpr Size short_call = 2;                                                 // elements
constexpr Size middle_call = Size{1} << 13;
constexpr double middle_bytes = static_cast<double>(middle_call) * sizeof(float);  // 32 KiB
constexpr Size long_call = Size{1} << 21;
constexpr double long_bytes = static_cast<double>(long_call) * sizeof(float);  // 8 MiB
constexpr Size hidden_call = Size{1} << 18;

double typical_seconds(const Communicator& ranks, Size times, const std::function<void()>& work) {
  return median(slowest(ranks, repeat(ranks, 2, times, work)));
}

/// Allocates as an engine does: huge pages shorten the access to rows that are far apart.
Matrix<float> zeros(Size rows, Size cols) {
  const auto matrix = allocate_matrix<float>("tessera::bench::operand", rows, cols);
  Kokkos::deep_copy(matrix, 0);
  return matrix;
}

/// Returns the bytes per second of to += from / 2, which moves three times the bytes of a View,
/// with Views of `n` elements. Sweeps of short ones are repeated.
double memory_rate(const Communicator& ranks, Size n) {
  const auto from = allocate_zeros<float>("tessera::bench::from", n),
             to = allocate_zeros<float>("tessera::bench::to", n);
  const Size sweeps = std::max<Size>(1, (Size{1} << 21) / n);
  const double seconds = typical_seconds(ranks, 10, [&] {
    for (Size s = 0; s < sweeps; ++s)
      for_each(
          "tessera::bench::sweep", n, KOKKOS_LAMBDA(Size i) { to(i) += 0.5F * from(i); });
  });
  return 3.0 * static_cast<double>(sweeps * n) * sizeof(float) / seconds;
}

/// Returns the rates of sweeps through 256 KiB, 1 MiB and so on to 64 MiB: each that exceeds the
/// rate of the next larger cache, or of memory, by a tenth.
std::vector<CacheLevel> measure_caches(const Communicator& ranks, double memory_rate_of_rank) {
  std::vector<CacheLevel> caches;
  for (Size bytes = largest_cache; bytes >= smallest_cache; bytes /= 4) {
    const double slower = caches.empty() ? memory_rate_of_rank : caches.back().bytes_per_second;
    const double rate = memory_rate(ranks, bytes / static_cast<Size>(2 * sizeof(float)));
    if (rate > 1.1 * slower) caches.push_back({bytes, rate});
  }
  std::reverse(caches.begin(), caches.end());
  return caches;
}

/// Returns the seconds of a kernel with one element that runs on all threads.
double kernel_seconds(const Communicator& ranks) {
  constexpr Size kernels = 100;
  const Vector<float> v("tessera::bench::v", 1);
  return typical_seconds(ranks, 10,
                         [&] {
                           for (Size k = 0; k < kernels; ++k)
                             for_each(
                                 "tessera::bench::smallest", 1,
                                 KOKKOS_LAMBDA(Size i) { v(i) += 1; }, swept);
                         }) /
         kernels;
}

/// Returns the seconds of an element in the kernel of gelu, whose operands are in the cache.
double measure_function_seconds(const Communicator& ranks, double kernel) {
#ifdef KOKKOS_ENABLE_CUDA
  const Size rows = 32768;
#else
  const Size rows = 32;
#endif
  const Size cols = 1024;
  const Matrix<float> x("tessera::bench::x", rows, cols), y("tessera::bench::y", rows, cols);
  Kokkos::deep_copy(x, 0.5F);
  const LayerSpec layer = pointwise("y", "x", 0, cols, Activation::gelu);
  const Gemm<float> no_product;
  LayerCall<float> call{layer, no_product};
  call.inputs[0] = x;
  call.output = y;
  const double seconds = typical_seconds(ranks, 50, [&] { forward(call); });
  return std::max(0.0, seconds - kernel) / static_cast<double>(rows * cols);
}

#ifdef KOKKOS_ENABLE_CUDA
constexpr Size narrow_side = 128, narrow_rows = 65536, square_side = 4096;
#else
constexpr Size narrow_side = 32, narrow_rows = 512, square_side = 384;
#endif

/// Square products, measured in turn with other products: a shared machine changes its speed.
class SquareProduct {
 public:
  double seconds_per_flop(const Communicator& ranks) const {
    return typical_seconds(ranks, 3,
                           [&] { gemm_(Trans::no, Trans::no, factor_, factor_, 0, to_); }) /
           GemmShape{square_side, square_side, square_side}.flops();
  }

 private:
  Matrix<float> factor_ = zeros(square_side, square_side), to_ = zeros(square_side, square_side);
  Gemm<float> gemm_{};
};

/// Returns the shortest side of products that reach half of the rate of large ones, from the three
/// products of a linear layer with many rows and few columns. The operands are in the cache.
double measure_half_rate_side(const Communicator& ranks, double kernel) {
  const Matrix<float> a = zeros(narrow_rows, narrow_side), b = zeros(narrow_side, narrow_side),
                      c = zeros(narrow_rows, narrow_side);
  const Gemm<float> gemm;
  const SquareProduct square;
  std::vector<double> sides;
  for (int i = 0; i < 20; ++i) {
    const double narrow = typical_seconds(ranks, 5, [&] {
      gemm(Trans::no, Trans::no, a, b, 0, c);
      gemm(Trans::no, Trans::yes, c, b, 0, a);
      gemm(Trans::yes, Trans::no, a, c, 0, b);
    });
    const double at_full_rate =
        square.seconds_per_flop(ranks) * GemmShape{narrow_rows, narrow_side, narrow_side}.flops();
    sides.push_back(static_cast<double>(narrow_side) * ((narrow / 3 - kernel) / at_full_rate - 1));
  }
  return std::max(0.0, median(sides));
}

/// Returns the further seconds of each byte of small products of blocks of wider matrices, which do
/// not fit into the first caches.
double measure_block_byte_seconds(const Communicator& ranks, const Machine& machine) {
  constexpr Size n = 32;  // blocks along each side
  const Size rows = n * narrow_side, cols = rows + narrow_side;
  const Matrix<float> a = zeros(rows, cols), b = zeros(rows, cols), c = zeros(rows, cols);
  const Gemm<float> gemm;
  const SquareProduct square;
  const auto block = [&](const Matrix<float>& of, Size i) {
    return block_of(of, {i % n * narrow_side, narrow_side}, {i / n * narrow_side, narrow_side});
  };
  const GemmShape product{narrow_side, narrow_side, narrow_side};
  std::vector<double> further;
  for (int i = 0; i < 5; ++i) {
    const double products = typical_seconds(ranks, 3, [&] {
      for (Size k = 0; k < n * n; ++k) {
        const Matrix<float> x = block(a, k), y = block(b, k), z = block(c, k);
        gemm(Trans::no, Trans::no, x, y, 0, z);
        gemm(Trans::no, Trans::yes, z, y, 0, x);
        gemm(Trans::yes, Trans::no, x, z, 0, y);
      }
    });
    const double arithmetic = (1 + machine.half_rate_side / narrow_side) *
                              square.seconds_per_flop(ranks) * product.flops();
    further.push_back(products / (3 * n * n) - machine.kernel_seconds - arithmetic);
  }
  return std::max(0.0, median(further) / static_cast<double>(product.elements() * sizeof(float)));
}

/// Returns the part of the shorter of arithmetic and memory traffic that the other hides: products
/// with several weights in turn, which are read from memory, take longer than those with one weight
/// in a cache.
double measure_product_overlap(const Communicator& ranks) {
  constexpr Size weights = 16;
#ifdef KOKKOS_ENABLE_CUDA
  const Size n = 2048, rows = 128;  // 16 MiB
#else
  const Size n = 512, rows = 32;  // 1 MiB, as in small networks
#endif
  const Matrix<float> in = zeros(rows, n), out = zeros(rows, n);
  std::vector<Matrix<float>> all;
  for (Size w = 0; w < weights; ++w) all.push_back(zeros(n, n));
  const Gemm<float> gemm;
  const auto seconds_of_product = [&](Size distinct) {
    return typical_seconds(ranks, 3,
                           [&] {
                             for (Size w = 0; w < weights; ++w)
                               gemm(Trans::no, Trans::no, in, all[w % distinct], 0, out);
                           }) /
           weights;
  };
  std::vector<double> overlaps;
  for (int i = 0; i < 5; ++i) {
    const double cached = seconds_of_product(1), read = seconds_of_product(weights);
    const double traffic =
        static_cast<double>(n * n) * sizeof(float) / memory_rate(ranks, weights * n * n / 2);
    overlaps.push_back(1 - (read - cached) / std::min(cached, traffic));
  }
  return std::clamp(median(overlaps), 0.0, 1.0);
}

double all_reduce_seconds(const Communicator& all, const Communicator& group, Size elements,
                          Size times) {
  const Vector<float> v("tessera::bench::reduced", elements);
  return typical_seconds(all, times, [&] { group.all_reduce(v); });
}

/// Returns the rounds of a short all-reduce.
double doublings(const Communicator& group) {
  return fewest_rounds(Operation::barrier, group.size());
}

double latency_of(const Communicator& all, const Communicator& group) {
  return all_reduce_seconds(all, group, short_call, 100) / doublings(group);
}

/// Returns the seconds that a message above the eager limit takes longer, in an all-reduce of
/// values that have just been written, as in a step. The cache lines that another rank has read
/// must be invalidated first.
double rendezvous_of(const Communicator& all, const Communicator& group,
                     const NetworkLevel& level) {
  const Vector<float> v("tessera::bench::reduced", middle_call);
  const double seconds = typical_seconds(all, 100, [&] {
    for_each(
        "tessera::bench::write", middle_call, KOKKOS_LAMBDA(Size i) { v(i) = 1; });
    group.all_reduce(v);
  });
  const double message = seconds / doublings(group) - middle_bytes / level.bytes_per_second;
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

/// Returns the part of the shorter of a call and a product that is hidden if the call starts before
/// the product and finishes after it.
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

/// Rounds to as many digits as a measurement has.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

/// Returns the bytes of the node or the GPU, divided by the ranks that use it.
Size memory_of_rank([[maybe_unused]] const BackendFacts& facts,
                    [[maybe_unused]] Size ranks_of_node) {
#ifdef KOKKOS_ENABLE_CUDA
  return static_cast<Size>(Kokkos::Cuda().cuda_device_prop().totalGlobalMem) / facts.ranks_per_gpu;
#else
  return static_cast<Size>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / ranks_of_node;
#endif
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

}  // namespace

double rate_beyond(double bytes, double seconds, double overhead) {
  return bytes / (seconds - std::min(overhead, seconds / 2));
}

void measure_memory(const Communicator& ranks, Machine& machine) {
  machine.memory_bytes_per_second = memory_rate(ranks, swept);
  machine.caches = measure_caches(ranks, machine.memory_bytes_per_second);
}

Machine measure_machine(const Communicator& ranks, const std::vector<Size>& node_of_rank,
                        const BackendFacts& facts, Size gemm_size, ProductRates rates) {
  const Activity activity("measuring the machine");
  const std::string float32(name_of(DType::float32));
  if (rates.count(float32) == 0) rates[float32] = gemm_peak(ranks, {DType::float32}, gemm_size, 5);
  Machine machine;
  machine.flops_per_second = std::move(rates);
  machine.memory_bytes = memory_of_rank(
      facts, std::count(node_of_rank.begin(), node_of_rank.end(), node_of_rank.front()));
  measure_memory(ranks, machine);
  machine.kernel_seconds = kernel_seconds(ranks);
  machine.function_seconds = measure_function_seconds(ranks, machine.kernel_seconds);
  machine.half_rate_side = measure_half_rate_side(ranks, machine.kernel_seconds);
  machine.block_byte_seconds = measure_block_byte_seconds(ranks, machine);
  machine.product_overlap = measure_product_overlap(ranks);
  if (ranks.size() > 1) machine.overlap = measure_overlap(ranks);
  machine.network = measure_network(ranks, node_of_rank);
  for (auto& [type, rate] : machine.flops_per_second) rate = rounded(rate);
  for (double Machine::*value :
       {&Machine::memory_bytes_per_second, &Machine::product_overlap, &Machine::half_rate_side,
        &Machine::block_byte_seconds, &Machine::kernel_seconds, &Machine::function_seconds,
        &Machine::overlap})
    machine.*value = rounded(machine.*value);
  for (CacheLevel& cache : machine.caches) cache.bytes_per_second = rounded(cache.bytes_per_second);
  for (NetworkLevel& level : machine.network)
    for (double NetworkLevel::*value :
         {&NetworkLevel::latency_seconds, &NetworkLevel::rendezvous_seconds,
          &NetworkLevel::bytes_per_second})
      level.*value = rounded(level.*value);
  return machine;
}

}  // namespace tessera::bench
