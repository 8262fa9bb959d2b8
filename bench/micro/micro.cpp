// SPDX-License-Identifier: Apache-2.0
#include "micro/micro.hpp"

#include <algorithm>
#include <numeric>

#include <tessera/base/view.hpp>
#include <tessera/nn/products/gemm.hpp>

#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

/// Runs all iterations in one batch, and combines the times of the ranks afterwards. Returns the
/// median.
double measure(benchmark::State& state, const Communicator& ranks, Size iterations,
               const MicroCase& micro) {
  std::vector<double> seconds;
  while (state.KeepRunningBatch(iterations)) {
    seconds = slowest(ranks, repeat(ranks, 3, iterations, micro.work));
    state.SetIterationTime(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  }
  const Statistics statistics = statistics_of(seconds);
  state.SetLabel(micro.label);
  state.counters["median_s"] = statistics.median;
  state.counters["min_s"] = statistics.min;
  state.counters["mad_s"] = statistics.mad;
  for (const auto& [name, amount] : micro.rates) state.counters[name] = amount / statistics.median;
  return statistics.median;
}

Size sum_over_ranks(const Communicator& ranks, Size mine) {
  const Kokkos::View<std::int64_t[1], Kokkos::HostSpace> sum("tessera::bench::wrong");
  sum(0) = mine;
  ranks.all_reduce(sum);
  return sum(0);
}

}  // namespace

MicroContext::~MicroContext() { benchmark::ClearRegisteredBenchmarks(); }

void MicroContext::add(const std::string& name, const std::function<MicroCase()>& make) {
  benchmark::RegisterBenchmark(name.c_str(), [this, make](benchmark::State& s) { run(s, make()); })
      ->UseManualTime()
      ->Iterations(options_.iterations)
      ->Unit(benchmark::kMicrosecond);
}

void MicroContext::run(benchmark::State& state, const MicroCase& micro) {
  if (micro.count_wrong) {
    const Size injected = mesh_.rank() == options_.wrong_rank ? 1 : 0;
    const Size wrong = sum_over_ranks(mesh_.world(), micro.count_wrong() + injected);
    if (wrong > 0) {  // the same on all ranks
      ++errors_;
      state.SkipWithError((std::to_string(wrong) + " elements are wrong").c_str());
      return;
    }
    state.counters["wrong"] = 0;
  }
  const double seconds = measure(state, mesh_.world(), options_.iterations, micro);
  if (!micro.kernel) return;
  if (micro.kernel->flops > 0) state.counters["flops_per_second"] = micro.kernel->flops / seconds;
  state.counters["bytes_per_second"] = micro.kernel->bytes / seconds;
  state.counters["roofline"] = least_seconds(*micro.kernel) / seconds;
}

double MicroContext::least_seconds(const KernelWork& kernel) {
  if (machine_.memory_bytes_per_second == 0) measure_memory(mesh_.world(), machine_);
  const double traffic = kernel.bytes / machine_.memory_rate(static_cast<Size>(kernel.bytes));
  if (kernel.flops == 0) return traffic;
  const auto [rate, is_new] = product_rates_.try_emplace(kernel.type);
  if (is_new) rate->second = gemm_peak(mesh_.world(), kernel.type, peak_gemm_size, 5);
  return std::max(traffic, kernel.flops / rate->second);
}

}  // namespace tessera::bench
