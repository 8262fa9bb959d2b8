// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/process/progress.hpp>

#include "measure/machine_parts.hpp"
#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

constexpr Size swept = Size{1} << 25;  // elements: 256 MiB of both Views, beyond most caches
constexpr Size smallest_cache = Size{1} << 18, largest_cache = Size{1} << 26;  // bytes

/// Returns the rates of sweeps through 256 KiB, 512 KiB and so on to 64 MiB: each that exceeds the
/// rate of the next larger cache, or of memory, by a tenth.
std::vector<CacheLevel> measure_caches(const Communicator& ranks, double memory_rate_of_rank) {
  std::vector<CacheLevel> caches;
  for (Size bytes = largest_cache; bytes >= smallest_cache; bytes /= 2) {
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

}  // namespace

double typical_seconds(const Communicator& ranks, Size times, const std::function<void()>& work) {
  return median(slowest(ranks, repeat(ranks, 2, times, work)));
}

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

void measure_memory(const Communicator& ranks, Machine& machine) {
  machine.memory_bytes_per_second = memory_rate(ranks, swept);
  machine.caches = measure_caches(ranks, machine.memory_bytes_per_second);
}

Machine measure_machine(const Communicator& ranks, const std::vector<Size>& node_of_rank,
                        const BackendFacts& facts, Size gemm_size,
                        std::map<std::string, GemmType> types) {
  const Activity activity("measuring the machine");
  types.try_emplace(std::string(name_of(DType::float32)));
  Machine machine;
  const auto measure_rates = [&] {
    for (const auto& [name, type] : types) {
      double& rate = machine.flops_per_second[name];
      rate = std::max(rate, gemm_peak(ranks, type, gemm_size, 5));
    }
  };
  measure_rates();
  for (const DType type : {DType::bfloat16, DType::float16})
    if (half_products(type) == HalfProducts::emulated)
      machine.emulated_products.emplace_back(name_of(type));
  machine.memory_bytes = memory_of_rank(
      facts, std::count(node_of_rank.begin(), node_of_rank.end(), node_of_rank.front()));
  measure_memory(ranks, machine);
  machine.kernel_seconds = kernel_seconds(ranks);
  machine.function_seconds = measure_function_seconds(ranks, machine.kernel_seconds);
  measure_products(ranks, machine);
  if (ranks.size() > 1) machine.overlap = measure_overlap(ranks);
  machine.network = measure_network(ranks, node_of_rank);
  measure_rates();  // again, because a shared machine may have been slow for a moment
  for (auto& [type, rate] : machine.flops_per_second) rate = rounded(rate);
  for (auto& [side, efficiency] : machine.side_efficiency) efficiency = rounded(efficiency);
  for (double Machine::*value : measured_numbers) machine.*value = rounded(machine.*value);
  for (CacheLevel& cache : machine.caches) cache.bytes_per_second = rounded(cache.bytes_per_second);
  for (NetworkLevel& level : machine.network)
    for (double NetworkLevel::*value : measured_link_numbers) level.*value = rounded(level.*value);
  return machine;
}

}  // namespace tessera::bench
