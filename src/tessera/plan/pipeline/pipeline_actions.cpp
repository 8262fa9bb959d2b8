// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
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

[[noreturn]] void reject(const PlacedPass& at, const PipelineShape& shape, std::string_view why) {
  throw Error(ExitCode::wrong_result, "pipeline schedule {}: stage {}, {}: {}",
              name_of(shape.schedule), at.stage, to_string(at.pass, shape), why);
}

/// Simulates the lists for check_pipeline(): each stage as far as it can, until all are done or all
/// wait.
class ScheduleCheck {
 public:
  ScheduleCheck(const ActionLists& lists, const PipelineShape& shape)
      : lists_(lists), shape_(shape), next_(lists.size()) {}

  void run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (std::size_t k = 0; k < lists_.size(); ++k)
        while (next_[k] < lists_[k].size() && carry_out(static_cast<Size>(k))) moves = true;
    }
    for (std::size_t k = 0; k < lists_.size(); ++k)
      if (next_[k] < lists_[k].size())
        reject({static_cast<Size>(k), lists_[k][next_[k]].pass}, shape_,
               fmt::format("{} never ends: the stages wait for each other",
                           name_of(lists_[k][next_[k]].step)));
    for (const PlacedPass& pass : received_)
      if (!arrived_.contains(pass))
        reject(pass, shape_, "the receive of its input is never finished");
    check_complete();
  }

 private:
  /// Executes the next action of the stage. Returns false, without effect, if the stage has to
  /// wait.
  bool carry_out(Size stage) {
    const PipelineAction& action = lists_[stage][next_[stage]];
    const PlacedPass pass{stage, action.pass};
    switch (action.step) {
      case PipelineStep::start_receive:
        if (!producer_of(pass, shape_)) reject(pass, shape_, "receives an input that nobody sends");
        once(received_, pass, "receives its input twice");
        break;
      case PipelineStep::finish_receive:
        if (!received_.contains(pass))
          reject(pass, shape_, "waits for an input without a started receive");
        if (!sent_.contains(*producer_of(pass, shape_))) return false;
        once(arrived_, pass, "waits for its input twice");
        break;
      case PipelineStep::compute:
        compute_pass(pass);
        break;
      case PipelineStep::start_send:
        if (!is_done(pass)) reject(pass, shape_, "sends an output that it does not have");
        if (!consumer_of(pass, shape_)) reject(pass, shape_, "sends an output that nobody reads");
        once(sent_, pass, "sends its output twice");
        break;
      case PipelineStep::finish_send:
        if (!sent_.contains(pass)) reject(pass, shape_, "waits for an output before sending it");
        if (!received_.contains(*consumer_of(pass, shape_))) return false;
        break;
    }
    ++next_[stage];
    return true;
  }

  /// Executes a pass. Checks that it is on the next microbatch and that the passes before it and
  /// its input are there.
  void compute_pass(const PlacedPass& pass) {
    const std::span<const PassKind> kinds = kinds_of(shape_.schedule);
    const auto kind = std::find(kinds.begin(), kinds.end(), pass.pass.kind);
    if (kind == kinds.end() || pass.pass.chunk >= shape_.virtual_stages ||
        pass.pass.microbatch >= shape_.microbatches)
      reject(pass, shape_, "is not a pass of this schedule");
    if (const Size next = number_done(pass); pass.pass.microbatch != next)
      reject(pass, shape_, fmt::format("runs before microbatch {}", next));
    if (kind != kinds.begin()) {
      PlacedPass earlier = pass;
      earlier.pass.kind = *(kind - 1);
      if (!is_done(earlier))
        reject(pass, shape_, fmt::format("begins before its {} pass", name_of(*(kind - 1))));
    }
    const auto before = producer_of(pass, shape_);
    if (before && !(before->stage == pass.stage ? is_done(*before) : arrived_.contains(pass)))
      reject(pass, shape_, "begins without its input");
    ++number_done(pass);
  }

  /// Returns the number of microbatches whose pass of this kind, chunk and stage is done.
  /// Microbatches come in order.
  Size& number_done(PlacedPass pass) {
    pass.pass.microbatch = 0;
    return done_[pass];
  }
  bool is_done(const PlacedPass& pass) { return pass.pass.microbatch < number_done(pass); }

  void check_complete() {
    for (Size stage = 0; stage < shape_.stages; ++stage)
      for (Size chunk = 0; chunk < shape_.virtual_stages; ++chunk)
        for (const PassKind kind : kinds_of(shape_.schedule))
          if (const Size next = number_done({stage, {kind, 0, chunk}}); next < shape_.microbatches)
            reject({stage, {kind, next, chunk}}, shape_, "is missing");
  }

  /// Rejects a pass that is already in `passes`, else adds it.
  void once(std::set<PlacedPass>& passes, const PlacedPass& pass, std::string_view otherwise) {
    if (!passes.insert(pass).second) reject(pass, shape_, otherwise);
  }

  const ActionLists& lists_;
  const PipelineShape& shape_;
  std::vector<std::size_t> next_;  ///< by stage, the position in its list
  std::set<PlacedPass> received_, arrived_,
      sent_;                         ///< receives started and finished, sends started
  std::map<PlacedPass, Size> done_;  ///< by pass of microbatch 0, the number of microbatches done
};

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

void check_pipeline(const ActionLists& lists, const PipelineShape& shape) {
  ScheduleCheck(lists, shape).run();
}

}  // namespace tessera
