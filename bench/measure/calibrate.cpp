// SPDX-License-Identifier: Apache-2.0
#include "measure/calibrate.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/nn/products/gemm.hpp>

#include "measure/slowest.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

constexpr std::size_t most_passes = 4;      ///< over all work
constexpr double block_seconds = 0.02;      ///< of repetitions of one piece of work
constexpr Size few_layers = Size{2} << 20;  ///< bytes that a layer or two touch
constexpr std::size_t most_sizes = 6;       ///< of one curve; between them lie straight lines

using Wanted = std::map<std::string, std::map<Size, PlannedWork>>;

/// The first ranks that do different work each speak for their likes.
std::set<Size> speakers(const Plan& plan) {
  const std::vector<Size> first = ranks_with_equal_work(plan).first;
  return {first.begin(), first.end()};
}

bool is_known(const Calibration& calibration, const std::string& name, Size size) {
  const auto curve = calibration.curves.find(name);
  if (curve == calibration.curves.end()) return false;
  const std::map<Size, Cost>& points = curve->second.points();
  const bool lies_between = points.begin()->first <= size && size <= points.rbegin()->first;
  return curve->second.covers(size) || (points.size() >= most_sizes && lies_between);
}

void collect(const WorkOfCase& of, const Calibration& calibration, Wanted& wanted) {
  for (const Size rank : speakers(of.plan)) {
    const WorkSizes sizes = work_sizes(of.plan, rank);
    const StagePlan& stage = of.plan.stage(rank);
    const auto want = [&](const Action& action, Size microbatch, Size) {
      for (const Work& work : work_of(on_microbatch(action, microbatch), of.plan, sizes)) {
        if (work.size == 0 || work.phase == Work::Phase::finishes) continue;
        const std::string name = curve_name(work, of);
        if (is_known(calibration, name, work.size)) continue;
        const bool is_layer = row_of(action.kind).subject == ActionSubject::layer;
        wanted[name].try_emplace(
            work.size, PlannedWork{&of, &action, work,
                                   is_layer ? sizes.layers[static_cast<std::size_t>(action.index)]
                                            : LayerSpec(),
                                   sizes.calls.stage});
      }
    };
    for_each_distinct(stage.actions, stage.repeated, sizes.calls, want);
  }
}

/// Of many sizes some that are spread evenly, both ends among them; of near ones the first.
std::vector<PlannedWork> chosen(const Wanted& wanted) {
  std::vector<PlannedWork> chosen;
  for (const auto& [name, sizes] : wanted) {
    std::vector<const PlannedWork*> apart;
    for (const auto& [size, planned] : sizes)
      if (apart.empty() || (size - apart.back()->work.size) * 50 > size) apart.push_back(&planned);
    const std::size_t n = std::min(apart.size(), most_sizes);
    for (std::size_t i = 0; i < n; ++i)
      chosen.push_back(*apart[n == 1 ? 0 : i * (apart.size() - 1) / (n - 1)]);
  }
  return chosen;
}

/// What happens between two pieces of work of a step: the core is as busy with products, and caches
/// are full of other numbers.
class Interlude {
 public:
  void operator()(Size bytes) const {
    const Vector<float> numbers = numbers_;
    const Size floats = std::min(bytes, most_bytes) / size_of(DType::float32);
    for_each(
        "tessera::bench::interlude", floats,
        KOKKOS_LAMBDA(Size i) { numbers(i) = 0.5F * numbers(i) + 1; });
    gemm_(Trans::no, Trans::no, a_, a_, 0, c_);
  }

 private:
  static constexpr std::size_t width = 128;
  /// More than a core's part of the last cache.
  static constexpr Size most_bytes = Size{16} << 20;
  Vector<float> numbers_ = allocate_zeros<float>("tessera::bench::interlude", most_bytes / 4);
  Matrix<float> a_{"tessera::bench::interlude_a", width, width};
  Matrix<float> c_{"tessera::bench::interlude_c", width, width};
  Gemm<float> gemm_;
};

/// Bytes that a step touches between two uses of the operands. Parameters, gradients and moments
/// have their turn once in a step, after all its memory in forward, backward, reductions and
/// update; what layers exchange has only just been made.
Size bytes_between(const PlannedWork& planned) {
  const Size all = planned.of->plan.memory(0).total();
  switch (planned.work.kind) {
    case WorkKind::update:
    case WorkKind::all_gather:
    case WorkKind::reduce_scatter:
    case WorkKind::all_reduce:
      return 4 * all;
    default:
      return std::min(few_layers, all);
  }
}

/// Seconds of a repetition on the mean and on the slowest rank.
struct Taken {
  double mean = 0, slowest = 0, exposed = 0;
};

/// All its functions are collective.
class WorkTimer {
 public:
  explicit WorkTimer(const Communicator& ranks) : ranks_(ranks) {}

  Taken time(const WorkRun& run, Size bytes_between) {
    bytes_between_ = bytes_between;
    run.refresh();
    return run.start ? started(run) : block(run, run.once);
  }

 private:
  double once(const WorkRun& run, const std::function<void()>& work) const {
    interlude_(bytes_between_);
    if (run.is_fresh) run.refresh();
    Kokkos::fence();
    ranks_.barrier();
    const Timer timer;
    work();
    Kokkos::fence();
    return timer.seconds();
  }

  /// Nothing need be warm: the interlude cools it all.
  Taken block(const WorkRun& run, const std::function<void()>& work) const {
    std::vector<double> mine{once(run, work)};
    const double first = slowest(ranks_, mine).front();
    const Size most = bytes_between_ > few_layers ? 2 : 3;
    for (Size i = 1; i < most && first * static_cast<double>(i) < block_seconds; ++i)
      mine.push_back(once(run, work));
    return {median(mean_over(ranks_, mine)), median(slowest(ranks_, mine)), 0};
  }

  /// By itself, and with as much computation in the meantime as it takes, in pieces between which
  /// the call is asked for, as the engine does it. What remains of it then is exposed.
  Taken started(const WorkRun& run) const {
    const Taken alone = block(run, [&] { run.start().wait(); });
    const Taken both = block(run, [&] {
      Request request = run.start();
      for (int piece = 0; piece < 4; ++piece) {
        compute(alone.mean / 4);
        request.test();
      }
      request.wait();
    });
    return {alone.mean, alone.slowest, std::clamp(both.mean - alone.mean, 0.0, alone.mean)};
  }

  static void compute(double seconds) {
    const Timer timer;
    while (timer.seconds() < seconds) {
    }
  }

  const Communicator& ranks_;
  Interlude interlude_;
  Size bytes_between_ = 0;
};

}  // namespace

Calibrator::Calibrator(const Calibration& calibration, const Communicator& ranks,
                       const MachineProbe& probe, std::vector<WorkOfCase> cases)
    : ranks_(ranks), probe_(&probe), cases_(std::move(cases)), is_new_(calibration.curves.empty()) {
  Wanted wanted;
  for (const WorkOfCase& of : cases_) collect(of, calibration, wanted);
  for (PlannedWork& planned : chosen(wanted)) works_.push_back({std::move(planned), {}, {}, {}});
}

bool Calibrator::pass(Calibration& calibration) {
  if (works_.empty() || speeds_.size() == most_passes) return false;
  WorkTimer timer(ranks_);
  std::vector<Taken> taken;
  const MachineSpeed before = probe_->measure(ranks_);
  for (const Timed& work : works_) {
    const MeshShape& shape = work.planned.of->plan.input.mesh;
    const Mesh& mesh = meshes_.try_emplace(shape.to_string(), ranks_, shape).first->second;
    taken.push_back(timer.time(make_work_run(work.planned, mesh), bytes_between(work.planned)));
  }
  speeds_.push_back(mean(before, probe_->measure(ranks_)));
  const MachineSpeed now = typical(speeds_);
  if (is_new_) calibration.machine = now;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    auto& [planned, mean, slowest, exposed] = works_[i];
    mean.push_back(taken[i].mean);
    slowest.push_back(taken[i].slowest);
    exposed.push_back(taken[i].exposed);
    const double factor = slowdown(planned.work, now, calibration.machine);
    const double seconds = median(mean) * factor;
    calibration.curves[curve_name(planned.work, *planned.of)].add(
        planned.work.size,
        {seconds, std::max(0.0, median(slowest) * factor - seconds), median(exposed) * factor});
  }
  if (speeds_.size() == most_passes) meshes_.clear();
  return true;
}

}  // namespace tessera::bench
