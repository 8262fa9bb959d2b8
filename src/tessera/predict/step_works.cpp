// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>

#include <tessera/predict/step_works.hpp>

namespace tessera {

std::size_t StepWorks::Hash::operator()(const Key& key) const {
  std::size_t hash = key.action->index();
  const auto add = [&](Size field) {
    hash = (hash ^ static_cast<std::size_t>(field)) * 0x9e3779b97f4a7c15;
  };
  add(key.microbatch);
  for_each_slot(*key.action, add);
  return hash ^ hash >> 32;
}

StepWorks::StepWorks(const Plan& plan, const CostOf& cost, const RankKinds& kinds,
                     const Software& software)
    : plan_(plan), cost_(cost), kinds_(plan.stages.size()), known_(plan.stages.size()) {
  std::vector<Size> changes;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    sizes_.push_back(work_sizes(plan, kinds.first[k], software));
    std::ranges::copy(sizes_[k].calls.samples.changes(), std::back_inserter(changes));
    kinds_[static_cast<std::size_t>(sizes_[k].calls.stage)].push_back(k);
  }
  for (const Range& run : equal_microbatches(plan.input.microbatches, changes))
    first_equal_.push_back(run.begin);
}

std::vector<StepPart> StepWorks::parts() {
  std::vector<StepPart> parts;
  const auto add = [&](Size times, Size later, const auto& range_of) {
    StepPart& part = parts.emplace_back(StepPart{{}, times});
    for (const StagePlan& stage : plan_.stages)
      part.works.push_back(works(part.works.size(), range_of(stage), later));
  };
  add(1, 0, [](const StagePlan& stage) { return Range{0, stage.repeated.before}; });
  const std::vector<Size> begins = begins_of_runs();
  for (std::size_t r = 0; r + 1 < begins.size(); ++r)
    add(begins[r + 1] - begins[r], begins[r] * plan_.stages.front().repeated.period,
        [](const StagePlan& stage) {
          return Range{stage.repeated.before, stage.repeated.actions};
        });
  add(1, 0, [](const StagePlan& stage) {
    const Size begin = stage.repeated.end();
    return Range{begin, static_cast<Size>(stage.actions.size()) - begin};
  });
  return parts;
}

/// Returns the repetitions with which runs of equal ones begin, and the number of all. While the
/// microbatches of a repetition are of several runs of equal_microbatches(), it is one by itself.
std::vector<Size> StepWorks::begins_of_runs() const {
  const Repetition& of = plan_.stages.front().repeated;
  Size first = plan_.input.microbatches, last = 0;  // microbatches of the first repetition
  for (const StagePlan& stage : plan_.stages)
    for (Size i = stage.repeated.before; i < stage.repeated.end(); ++i) {
      first = std::min(first, stage.actions[i].microbatch);
      last = std::max(last, stage.actions[i].microbatch);
    }
  std::set<Size> begins{0, of.times};
  const auto reaches = [&](Size microbatch, Size begin) {
    return std::clamp<Size>((begin - microbatch + of.period - 1) / of.period, 0, of.times);
  };
  for (const Size begin : first_equal_)
    for (Size r = reaches(last, begin); r <= reaches(first, begin); ++r) begins.insert(r);
  return {begins.begin(), begins.end()};
}

/// Returns the work of some of a stage's actions on microbatches `later` than the listed ones.
std::vector<const CostedWork*> StepWorks::works(std::size_t stage, Range actions, Size later) {
  std::vector<const CostedWork*> all;
  for (Size i = actions.begin; i < actions.end(); ++i) {
    const ListedAction& listed = plan_.stages[stage].actions[i];
    const Size number = listed.microbatch + later;
    for (const CostedWork& one : works_of(stage, *listed.action, number)) all.push_back(&one);
  }
  return all;
}

/// Returns the work of an action. It is computed once for all equal microbatches.
const std::vector<CostedWork>& StepWorks::works_of(std::size_t stage, const Action& action,
                                                   Size microbatch) {
  // In a fixed order of sums, each microbatch completes another number of sums.
  if (!plan_.input.numerics.reproducible)
    microbatch = *std::prev(std::upper_bound(first_equal_.begin(), first_equal_.end(), microbatch));
  const auto [at, is_new] = known_[stage].try_emplace({&action, microbatch});
  std::vector<CostedWork>& all = at->second;
  if (!is_new) return all;
  for (const std::size_t k : kinds_[stage]) {
    const std::vector<Work> works = work_of(action, microbatch, plan_, sizes_[k]);
    if (k == kinds_[stage].front()) all.resize(works.size());
    if (works.size() != all.size())
      throw std::logic_error("ranks of a stage do other numbers of pieces of work");
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (all[i].costs.empty()) all[i].work = works[i];
      all[i].costs.push_back(works[i].is_empty() ? Cost{} : cost_(works[i]));
      all[i].costs.back().is_issued = works[i].call && works[i].call->is_issued;
    }
  }
  for (CostedWork& one : all) {
    if (!one.work.call) continue;
    const MeshShape& mesh = plan_.input.mesh;
    const AxisSet axes = one.work.call->ranks;
    one.axis = mesh.group_name(axes);
    one.meets_other_stages = kinds_.size() > 1 && !one.work.is_message() &&
                             !(axes & mesh.axes_named({"pipeline"})).empty();
  }
  return all;
}

}  // namespace tessera
