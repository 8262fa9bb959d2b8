// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    sizes_.push_back(work_sizes(plan, kinds.first[k], software));
    samples_.push_back(sizes_[k].calls.samples.own());
    kinds_[static_cast<std::size_t>(sizes_[k].calls.stage)].push_back(k);
  }
  // In a fixed order of sums, each microbatch completes another number of sums.
  if (plan.input.has_stages() && !plan.input.numerics.reproducible)
    for (const Range& run : equal_to_each_other(plan.input.microbatches))
      first_equal_.resize(static_cast<std::size_t>(run.end()), run.begin);
}

std::vector<StepPart> StepWorks::parts() {
  std::vector<StepPart> parts;
  const auto add = [&](Size times, std::optional<Size> microbatch, const auto& range_of) {
    StepPart& part = parts.emplace_back(StepPart{{}, times});
    for (const StagePlan& stage : plan_.stages)
      part.works.push_back(works(part.works.size(), range_of(stage), microbatch));
  };
  add(1, {}, [](const StagePlan& stage) { return Range{0, stage.repeated.before}; });
  for (const Range& run : equal_to_each_other(plan_.stages.front().repeated.times))
    add(run.count, run.begin, [](const StagePlan& stage) {
      return Range{stage.repeated.before, stage.repeated.actions};
    });
  add(1, {}, [](const StagePlan& stage) {
    const Size begin = stage.repeated.end();
    return Range{begin, static_cast<Size>(stage.actions.size()) - begin};
  });
  return parts;
}

/// Returns the runs of the first `microbatches` microbatches that are equal on every kind.
std::vector<Range> StepWorks::equal_to_each_other(Size microbatches) const {
  return equal_microbatches(microbatches, plan_.input.microbatches, samples_);
}

/// Returns the work of some of a stage's actions. A repeated part stands for `microbatch`.
std::vector<WorkEntry> StepWorks::works(std::size_t stage, Range actions,
                                        std::optional<Size> microbatch) {
  std::vector<WorkEntry> all;
  for (Size i = actions.begin; i < actions.end(); ++i) {
    const ListedAction& listed = plan_.stages[stage].actions[i];
    const Size number = microbatch.value_or(listed.microbatch);
    for (const CostedWork& one : works_of(stage, listed.action, number))
      all.push_back({&one, number});
  }
  return all;
}

/// Returns the work of an action. It is computed once for all equal microbatches.
const std::vector<CostedWork>& StepWorks::works_of(std::size_t stage, const Action& action,
                                                   Size microbatch) {
  if (!first_equal_.empty()) microbatch = first_equal_[static_cast<std::size_t>(microbatch)];
  const auto [at, is_new] = known_[stage].try_emplace({&action, microbatch});
  std::vector<CostedWork>& all = at->second;
  if (!is_new) return all;
  for (const std::size_t k : kinds_[stage]) {
    const std::vector<Work> works = work_of(action, microbatch, plan_, sizes_[k]);
    all.resize(works.size());
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (all[i].costs.empty()) all[i].work = works[i];
      all[i].costs.push_back(works[i].is_empty() ? Cost{} : cost_(works[i]));
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
