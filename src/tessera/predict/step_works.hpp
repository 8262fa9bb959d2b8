// SPDX-License-Identifier: Apache-2.0
// The work of a step with its cost, in the order in which the stages do it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/predict/rank_kinds.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {

/// The cost of one piece of work.
struct Cost {
  double seconds = 0;  ///< mean over ranks that do the same work
  /// Seconds by which the slowest of these ranks exceeds the mean. The other ranks wait for it at
  /// the next call.
  double lag = 0;
  /// The part of `seconds` of a started call that computation cannot hide, because the rank itself
  /// moves the message.
  double exposed = 0;
  double launches = 0;     ///< the part of `seconds` that is the overhead of launching kernels
  bool is_issued = false;  ///< the ranks make the call; StepWorks sets it
};
using CostOf = std::function<Cost(const Work&)>;

/// Work with its cost. Equal work of several microbatches is one CostedWork.
struct CostedWork {
  Work work;
  std::string axis;                 ///< of a call: "data", or several as "data+fsdp"
  bool meets_other_stages = false;  ///< a collective call over several stages
  std::vector<Cost> costs;          ///< by kind of the stage, as in StepWorks::kinds_by_stage()
};

using StageWorks = std::vector<std::vector<const CostedWork*>>;  ///< by stage

/// A part of a step whose work is done `times` times.
struct StepPart {
  StageWorks works;
  Size times = 1;
};

/// Lists the work of a plan's step for its kinds of ranks. The entries live as long as this.
class StepWorks {
 public:
  StepWorks(const Plan& plan, const CostOf& cost, const RankKinds& kinds, const Software& software);

  /// Returns the kinds of each stage.
  const std::vector<std::vector<std::size_t>>& kinds_by_stage() const { return kinds_; }
  /// Returns the parts of a step: the actions before the repeated ones, each run of equal
  /// repetitions, and the actions behind them.
  std::vector<StepPart> parts();

 private:
  /// An action on a microbatch. Actions with equal keys do the same work.
  struct Key {
    const Action* action;
    Size microbatch;
    bool operator==(const Key& other) const {
      return microbatch == other.microbatch && *action == *other.action;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::vector<const CostedWork*> works(std::size_t stage, Range actions, Size later);
  const std::vector<CostedWork>& works_of(std::size_t stage, const Action& action, Size microbatch);
  std::vector<Size> begins_of_runs() const;

  const Plan& plan_;
  const CostOf& cost_;
  std::vector<WorkSizes> sizes_;                 ///< by kind
  std::vector<std::vector<std::size_t>> kinds_;  ///< by stage
  std::vector<Size> first_equal_;  ///< microbatches with which runs of equal ones begin
  std::vector<std::unordered_map<Key, std::vector<CostedWork>, Hash>> known_;  ///< by stage
};

}  // namespace tessera
