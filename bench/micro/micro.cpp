// SPDX-License-Identifier: Apache-2.0
#include "micro/micro.hpp"

#include <numeric>

#include <tessera/base/view.hpp>
#include <tessera/trace/waits.hpp>

#include "measure/slowest.hpp"
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

std::shared_ptr<MpiHandle> raw_axis(const Mesh& mesh, const std::string& axis) {
  if (!Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible) return nullptr;
  const WaitLimit limit("a split", timeout_seconds());
  const int color = static_cast<int>(group_of(mesh.shape(), axis, mesh.rank()).front());
  return std::make_shared<MpiHandle>(
      MpiHandle::split(MPI_COMM_WORLD, color, static_cast<int>(mesh.rank()), Site::current()));
}

}  // namespace

MicroContext::~MicroContext() { benchmark::ClearRegisteredBenchmarks(); }

std::vector<AxisPoint> MicroContext::axis_points() const {
  std::vector<AxisPoint> points;
  for (const auto& [name, size] : mesh_.shape().axes()) {
    if (size == 1) continue;
    const std::shared_ptr<MpiHandle> raw = raw_axis(mesh_, name);
    for (const Size bytes : options_.bytes) points.push_back({mesh_.axis(name), raw, bytes});
  }
  return points;
}

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
