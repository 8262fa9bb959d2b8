// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <tessera/plan/pipeline/pipeline_actions.hpp>

namespace tessera {
namespace {

/// Returns the same kind of pass on the chunk that is `by` chunks later in the order of layers;
/// none if the model has no such chunk.
std::optional<PlacedPass> neighbour(const PlacedPass& of, const PipelineShape& shape, Size by) {
  const Size number = of.pass.chunk * shape.stages + of.stage + by;
  if (number < 0 || number >= shape.stages * shape.virtual_stages) return std::nullopt;
  return PlacedPass{number % shape.stages,
                    {of.pass.kind, of.pass.microbatch, number / shape.stages}};
}

/// Returns 1 if the next chunk reads the output of a pass, -1 if the previous chunk does, and 0 for
/// gradients of weights, which no other pass reads.
Size direction(PassKind kind) {
  if (kind == PassKind::weight_gradients) return 0;
  return kind == PassKind::forward ? 1 : -1;
}

/// The position at which each receive starts.
class ReceiveOrder {
 public:
  ReceiveOrder(const PassLists& passes, const PipelineShape& shape)
      : shape_(shape), positions_(passes.size()) {
    for (std::size_t k = 0; k < passes.size(); ++k)
      for (std::size_t i = 0; i < passes[k].size(); ++i) {
        std::vector<std::size_t>& alike = positions_[k][passes[k][i].kind];
        numbers_[{static_cast<Size>(k), passes[k][i]}] = static_cast<Size>(alike.size());
        alike.push_back(i);
      }
  }

  /// Returns the position of the pass on its stage before which the receive of its input starts:
  /// one pass before the input is needed, or earlier if it is sent earlier. Each stage runs the
  /// passes of a kind one turn later than the stage before it in the direction of the messages:
  /// with p stages, stage k runs forward pass n in turn n + k, and backward pass n in turn
  /// n + p - 1 - k.
  std::size_t start(const PlacedPass& pass) const {
    const PlacedPass before = producer_of(pass, shape_).value();
    const Size number = numbers_.at(pass),
               earliest = numbers_.at(before) + 1 -
                          direction(pass.pass.kind) * (pass.stage - before.stage);
    const std::size_t needed =
        positions_[pass.stage].at(pass.pass.kind)[std::min(number, earliest)];
    return needed == 0 ? 0 : needed - 1;
  }

 private:
  const PipelineShape& shape_;
  std::map<PlacedPass, Size> numbers_;  ///< among the passes of the same kind on the stage
  std::vector<std::map<PassKind, std::vector<std::size_t>>> positions_;  ///< by stage and number
};

}  // namespace

std::optional<PlacedPass> producer_of(const PlacedPass& of, const PipelineShape& shape) {
  const Size by = direction(of.pass.kind);
  return by == 0 ? std::nullopt : neighbour(of, shape, -by);
}

std::optional<PlacedPass> consumer_of(const PlacedPass& of, const PipelineShape& shape) {
  const Size by = direction(of.pass.kind);
  return by == 0 ? std::nullopt : neighbour(of, shape, by);
}

ActionLists add_messages(const PassLists& passes, const PipelineShape& shape) {
  const ReceiveOrder order(passes, shape);
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
        receives[order.start({stage, pass})].push_back(pass);
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
