// SPDX-License-Identifier: Apache-2.0
#include "micro/micro.hpp"

#include <numeric>

#include <tessera/base/view.hpp>

#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

/// Runs all iterations in one batch, and combines the times of the ranks afterwards.
void measure(benchmark::State& state, const Communicator& ranks, Size iterations,
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
  measure(state, mesh_.world(), options_.iterations, micro);
}

}  // namespace tessera::bench
