// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <tessera/plan/pipeline/pipeline_actions.hpp>

namespace tessera {
namespace {

/// Returns the same kind of pass on the chunk that is `by` chunks later in the order in which this
/// kind passes them; none if there is no such chunk, and for gradients of weights, which no other
/// pass reads.
std::optional<PlacedPass> neighbour(const PlacedPass& of, const PipelineShape& shape, Size by) {
  const Size later = of.pass.kind == PassKind::forward ? by : -by;
  const Size number = chunk_number(of.stage, of.pass.chunk, shape) + later;
  if (of.pass.kind == PassKind::weight_gradients || number < 0 ||
      number >= shape.stages * shape.virtual_stages)
    return std::nullopt;
  return PlacedPass{stage_of(number, shape),
                    {of.pass.kind, of.pass.microbatch, number / shape.stages}};
}

}  // namespace

std::optional<PlacedPass> producer_of(const PlacedPass& of, const PipelineShape& shape) {
  return neighbour(of, shape, -1);
}

std::optional<PlacedPass> consumer_of(const PlacedPass& of, const PipelineShape& shape) {
  return neighbour(of, shape, 1);
}

std::optional<PlacedPass> needed_by(const PlacedPass& pass, const PipelineShape& shape) {
  PlacedPass own = pass;
  own.pass.kind = PassKind::input_gradients;
  if (pass.pass.kind == PassKind::weight_gradients) return own;
  own.pass.kind = PassKind::forward;
  if (pass.pass.kind == PassKind::forward) return producer_of(pass, shape);
  return producer_of(pass, shape).value_or(own);
}

std::vector<std::vector<Size>> pass_ends(const PassLists& passes, const PipelineShape& shape) {
  std::vector<std::vector<Size>> ends(passes.size());
  std::map<PlacedPass, Size> ended;
  std::vector<std::size_t> next(passes.size());
  advance_stages(passes, next, [&](std::size_t stage, const StagePass& pass) {
    const PlacedPass placed{static_cast<Size>(stage), pass};
    Size begin = ends[stage].empty() ? 0 : ends[stage].back();
    if (const std::optional<PlacedPass> before = needed_by(placed, shape)) {
      const auto found = ended.find(*before);
      if (found == ended.end()) return false;
      begin = std::max(begin, found->second);
    }
    ends[stage].push_back(ended[placed] = begin + (pass.kind == PassKind::backward ? 2 : 1));
    return true;
  });
  return ends;
}

ActionLists add_messages(const PassLists& passes, const PipelineShape& shape) {
  const std::vector<std::vector<Size>> ends = pass_ends(passes, shape);
  std::map<PlacedPass, std::size_t> positions;
  for (std::size_t k = 0; k < passes.size(); ++k)
    for (std::size_t i = 0; i < passes[k].size(); ++i)
      positions[{static_cast<Size>(k), passes[k][i]}] = i;
  // A receive starts before the pass at this position on its stage: behind passes that end before
  // the send is finished. So no send waits for a pass that ends later, and passes that can run
  // without messages can run with them.
  const auto start_of_receive = [&](const PlacedPass& pass) {
    const PlacedPass before = producer_of(pass, shape).value();
    const std::vector<Size>&own = ends[pass.stage], &others = ends[before.stage];
    const Size finished = others[std::min(positions.at(before) + 1, others.size() - 1)];
    const auto ended = std::ranges::lower_bound(own, finished) - own.begin();
    return std::min<Size>(ended, std::max<Size>(static_cast<Size>(positions.at(pass)) - 1, 0));
  };
  ActionLists lists;
  for (Size stage = 0; stage < static_cast<Size>(passes.size()); ++stage) {
    const std::vector<StagePass>& own = passes[stage];
    std::vector<PipelineAction> list;
    const auto travels = [&](const std::optional<PlacedPass>& other) {
      return other && other->stage != stage;
    };
    std::vector<std::vector<StagePass>> receives(own.size());  // by the pass that they precede
    for (const StagePass& pass : own)
      if (travels(producer_of({stage, pass}, shape)))
        receives[start_of_receive({stage, pass})].push_back(pass);
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (const StagePass& pass : receives[i]) list.push_back({PipelineStep::start_receive, pass});
      if (travels(producer_of({stage, own[i]}, shape)))
        list.push_back({PipelineStep::finish_receive, own[i]});
      list.push_back({PipelineStep::compute, own[i]});
      if (travels(consumer_of({stage, own[i]}, shape)))
        list.push_back({PipelineStep::start_send, own[i]});
      if (i > 0 && travels(consumer_of({stage, own[i - 1]}, shape)))
        list.push_back({PipelineStep::finish_send, own[i - 1]});
    }
    if (!own.empty() && travels(consumer_of({stage, own.back()}, shape)))
      list.push_back({PipelineStep::finish_send, own.back()});
    lists.push_back(std::move(list));
  }
  return lists;
}

}  // namespace tessera
