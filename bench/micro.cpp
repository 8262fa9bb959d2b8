// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"

#include <algorithm>
#include <numeric>

#include <tessera/base/timer.hpp>
#include <tessera/base/view.hpp>

#include "statistics.hpp"

namespace tessera::bench {
namespace {

/// For each repetition the seconds of the slowest rank.
std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, ReduceOp::max);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

std::vector<double> repeat(const Communicator& ranks, Size times, const MicroContext::Work& work) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) work();
  Kokkos::fence();
  std::vector<double> seconds;
  for (Size i = 0; i < times; ++i) {
    ranks.barrier();
    const Timer timer;
    work();
    Kokkos::fence();
    seconds.push_back(timer.seconds());
  }
  return seconds;
}

/// All iterations in one batch: times are put together over ranks when they are over.
template <class Steps>
void measure(benchmark::State& state, const Communicator& ranks, Size iterations,
             const Steps& steps, const MicroContext::Rates& rates) {
  std::vector<double> seconds;
  while (state.KeepRunningBatch(iterations)) {
    seconds = slowest(ranks, steps(iterations));
    state.SetIterationTime(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  }
  const Statistics statistics = statistics_of(seconds);
  state.counters["median_s"] = statistics.median;
  state.counters["min_s"] = statistics.min;
  state.counters["mad_s"] = statistics.mad;
  for (const auto& [name, amount] : rates) state.counters[name] = amount / statistics.median;
}

Size sum_over_ranks(const Communicator& ranks, Size mine) {
  const Kokkos::View<std::int64_t[1], Kokkos::HostSpace> sum("tessera::bench::wrong");
  sum(0) = mine;
  ranks.all_reduce(sum);
  return sum(0);
}

template <class F>
void register_one(const std::string& name, Size iterations, const F& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

MicroContext::~MicroContext() { benchmark::ClearRegisteredBenchmarks(); }

void MicroContext::add(const std::string& name, const Work& work, const Rates& rates) {
  const Size iterations = options_.iterations;
  register_one(name, iterations, [=, this](benchmark::State& state) {
    measure(
        state, mesh_.world(), iterations,
        [&](Size times) { return repeat(mesh_.world(), times, work); }, rates);
  });
}

void MicroContext::add_checked(const std::string& name, const Work& work,
                               const std::function<Size()>& count_wrong, const Rates& rates) {
  const Size iterations = options_.iterations;
  register_one(name, iterations, [=, this](benchmark::State& state) {
    // All ranks go on alike.
    const Size wrong = sum_over_ranks(mesh_.world(), count_wrong());
    if (wrong > 0) {
      ++errors_;
      state.SkipWithError((std::to_string(wrong) + " elements are wrong").c_str());
      return;
    }
    measure(
        state, mesh_.world(), iterations,
        [&](Size times) { return repeat(mesh_.world(), times, work); }, rates);
    state.counters["wrong"] = static_cast<double>(wrong);
  });
}

void MicroContext::add_timed(const std::string& name,
                             const std::function<std::vector<double>(Size iterations)>& steps) {
  const Size iterations = options_.iterations;
  register_one(name, iterations, [=, this](benchmark::State& state) {
    measure(state, mesh_.world(), iterations, steps, {});
  });
}

}  // namespace tessera::bench
