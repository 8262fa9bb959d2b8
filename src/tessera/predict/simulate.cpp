// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include <tessera/predict/simulate.hpp>

namespace tessera {
namespace {

/// An action of a stage on a microbatch. Actions with equal keys do the same work.
struct ActionKey {
  const Action* action;
  Size microbatch;
  friend bool operator==(const ActionKey& a, const ActionKey& b) {
    return a.microbatch == b.microbatch && *a.action == *b.action;
  }
};

struct HashOfKey {
  std::size_t operator()(const ActionKey& key) const {
    std::size_t hash = key.action->index();
    const auto add = [&](Size field) {
      hash = (hash ^ static_cast<std::size_t>(field)) * 0x9e3779b97f4a7c15;
    };
    add(key.microbatch);
    for_each_slot(*key.action, add);
    return hash ^ hash >> 32;
  }
};

/// Simulates a step. `sizes_` and clocks are indexed by kind.
class Simulator {
 public:
  Simulator(const Plan& plan, const CostOf& cost, const RankKinds& kinds)
      : plan_(plan),
        cost_(cost),
        kinds_(kinds),
        state_{Seconds(kinds.size()), Seconds(kinds.size()), {}, {}},
        of_stage_(plan.stages.size()),
        known_(plan.stages.size()) {
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      sizes_.push_back(work_sizes(plan, kinds.first[k]));
      samples_.push_back(sizes_[k].calls.samples);
      of_stage_[static_cast<std::size_t>(sizes_[k].calls.stage)].push_back(k);
      all_.push_back(k);
    }
    // In a fixed order of sums, each microbatch completes another number of sums.
    if (plan.input.has_stages() && !plan.input.numerics.reproducible)
      for (const Range& run : equal_to_each_other(plan.input.microbatches))
        first_equal_.resize(static_cast<std::size_t>(run.end()), run.begin);
  }

  /// Simulates two steps and returns the times of the second, in which ranks begin at the different
  /// times at which they end a step.
  SimulatedStep step() {
    const std::vector<Part> parts = parts_of_step();
    for (const Part& part : parts) repeat(part);
    const Seconds begin = state_.now;
    state_.result = {};
    for (const Part& part : parts) repeat(part);
    for (std::size_t k = 0; k < begin.size(); ++k)
      state_.result.step_seconds = std::max(state_.result.step_seconds, state_.now[k] - begin[k]);
    return state_.result;
  }

 private:
  using Seconds = std::vector<double>;       ///< by kind
  using Members = std::vector<std::size_t>;  ///< kinds that execute one piece of work together

  struct State {
    Seconds now;                       ///< the clocks
    Seconds lag;                       ///< lag since the last call
    std::map<RankSet, Seconds> links;  ///< by set and leader, the end of the group's latest call
    SimulatedStep result;
  };

  struct CostedWork {
    Work work;
    std::vector<Cost> costs;          ///< by kind of the stage, as in of_stage_
    bool meets_other_stages = false;  ///< a collective call over several stages
  };
  /// A piece of work of an action. Actions on equal microbatches share the CostedWork.
  struct Piece {
    const CostedWork* costed;
    Size number;  ///< Work::number of this action
  };
  using StageWorks = std::vector<std::vector<Piece>>;  ///< by stage

  /// A part of a step whose work is executed `times` times.
  struct Part {
    StageWorks works;
    Size times = 1;
  };

  /// Returns the runs of the first `n` microbatches that are equal on every kind.
  std::vector<Range> equal_to_each_other(Size n) const {
    return equal_microbatches(n, plan_.input.microbatches, samples_);
  }

  /// Returns the parts of a step: each run of equal_microbatches(), then the actions that are not
  /// repeated.
  std::vector<Part> parts_of_step() {
    std::vector<Part> parts;
    const auto add = [&](Size times, std::optional<Size> microbatch, const auto& range_of) {
      Part& part = parts.emplace_back(Part{{}, times});
      for (const StagePlan& stage : plan_.stages)
        part.works.push_back(costed_works(part.works.size(), range_of(stage), microbatch));
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

  /// Simulates a part. After 64 repetitions, each further one takes as long as the last of these.
  void repeat(const Part& part) {
    constexpr Size most = 64;
    const Size times = std::min(part.times, most);
    for (Size i = 0; i + 1 < times; ++i) carry_out(part.works);
    const State before = state_;
    carry_out(part.works);
    if (part.times > times) advance(before, static_cast<double>(part.times - times));
  }

  /// Adds `times` times the change since `before`.
  void advance(const State& before, double times) {
    const auto one = [&](double& now, double then) { now += times * (now - then); };
    const auto each = [&](Seconds& now, const Seconds& then) {
      for (std::size_t k = 0; k < now.size(); ++k) one(now[k], then[k]);
    };
    each(state_.now, before.now);
    each(state_.lag, before.lag);
    for (auto& [ranks, busy_until] : state_.links) each(busy_until, before.links.at(ranks));
    SimulatedStep& result = state_.result;
    for (const auto part :
         {&SimulatedStep::products, &SimulatedStep::kernels, &SimulatedStep::update}) {
      one((result.*part).work, (before.result.*part).work);
      one((result.*part).launches, (before.result.*part).launches);
    }
    for (std::size_t c = 0; c < result.calls.size(); ++c) {
      const SimulatedStep::Call& then = before.result.calls[c];
      one(result.calls[c].calls, then.calls);
      one(result.calls[c].seconds, then.seconds);
      one(result.calls[c].waiting, then.waiting);
    }
  }

  /// Returns the work of some of a stage's actions with its cost on each kind of the stage. A
  /// repeated part stands for the given microbatch.
  std::vector<Piece> costed_works(std::size_t stage, Range actions,
                                  std::optional<Size> repeated_for) {
    std::vector<Piece> all;
    for (Size i = actions.begin; i < actions.end(); ++i) {
      const auto& [action, listed_for] = plan_.stages[stage].actions[i];
      const Size microbatch = repeated_for.value_or(listed_for);
      const auto* message = std::get_if<Message>(&action);
      for (const CostedWork& costed : costed_work(stage, action, microbatch))
        all.push_back({&costed, costed.work.is_message()
                                    ? message_number(*message, microbatch, plan_.input)
                                    : costed.work.number});
    }
    return all;
  }

  Size first_equal(Size microbatch) const {
    return first_equal_.empty() ? microbatch : first_equal_[static_cast<std::size_t>(microbatch)];
  }

  /// Returns the same of one action. It is computed once for all equal microbatches.
  const std::vector<CostedWork>& costed_work(std::size_t stage, const Action& action,
                                             Size microbatch) {
    const auto [at, is_new] = known_[stage].try_emplace({&action, first_equal(microbatch)});
    std::vector<CostedWork>& all = at->second;
    if (!is_new) return all;
    for (const std::size_t k : of_stage_[stage]) {
      const std::vector<Work> works = work_of(action, microbatch, plan_, sizes_[k]);
      if (all.empty())
        for (const Work& work : works) all.push_back({work, {}, meets_other_stages(work)});
      for (std::size_t i = 0; i < works.size(); ++i)
        all[i].costs.push_back(works[i].is_empty() ? Cost{} : cost_(works[i]));
    }
    return all;
  }

  /// Executes the work of all stages once. Each stage advances until it waits for a message or for
  /// a call over several stages. Such a call is executed when all stages wait for it.
  void carry_out(const StageWorks& works) {
    std::vector<std::size_t> next(works.size());
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t s = 0; s < works.size(); ++s)
        while (next[s] < works[s].size()) {
          const Piece& one = works[s][next[s]];
          if (one.costed->meets_other_stages || !has_arrived(one, s)) break;
          execute(one, one.costed->costs, of_stage_[s], s);
          ++next[s];
          moves = true;
        }
      if (!moves && next[0] < works[0].size()) {
        const Piece& common = works[0][next[0]];
        std::vector<Cost> costs(all_.size());
        for (std::size_t s = 0; s < works.size(); ++s) {
          const std::vector<Cost>& own = works[s].at(next[s]++).costed->costs;
          for (std::size_t i = 0; i < own.size(); ++i) costs[of_stage_[s][i]] = own[i];
        }
        execute(common, costs, all_, 0);
        moves = true;
      }
    }
  }

  bool meets_other_stages(const Work& work) const {
    if (of_stage_.size() == 1 || !work.call || work.is_message()) return false;
    const std::vector<std::string> axes = axes_of(work.call->ranks, plan_.input);
    return std::find(axes.begin(), axes.end(), "pipeline") != axes.end();
  }
  bool has_arrived(const Piece& piece, std::size_t stage) const {
    const Work& work = piece.costed->work;
    return !work.is_message() || work.call->phase != Phase::finish ||
           messages_.contains({stage, piece.number});
  }

  /// Executes one piece of work on the kinds `members`. `costs` holds a cost per member; `stage`
  /// matters for messages only.
  void execute(const Piece& piece, const std::vector<Cost>& costs, const Members& members,
               std::size_t stage) {
    const Work& work = piece.costed->work;
    if (!work.call) return compute(work, costs, members);
    if (work.is_message())
      return work.call->phase == Phase::start ? send(piece, stage) : receive(piece, stage);
    switch (work.call->phase) {
      case Phase::whole:
        return communicate(work, costs, members);
      case Phase::start:
        return start(work, costs, members);
      case Phase::finish:
        return finish(work, members);
    }
  }

  void compute(const Work& work, const std::vector<Cost>& costs, const Members& members) {
    SimulatedStep::Kernels& part = work.has_products ? state_.result.products
                                   : work.updates    ? state_.result.update
                                                     : state_.result.kernels;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t k = members[i];
      state_.now[k] += costs[i].seconds;
      state_.lag[k] += costs[i].lag;
      part.work += (costs[i].seconds - costs[i].launches) * kinds_.share[k];
      part.launches += costs[i].launches * kinds_.share[k];
    }
  }

  /// Returns the leader of the group of `kind`.
  std::size_t leader_of(RankSet ranks, std::size_t kind) const {
    return static_cast<std::size_t>(kinds_.leader.at(ranks)[kind]);
  }

  /// Returns the sums of the calls with the axis and operation of `work`.
  SimulatedStep::Call& row(const Work& work) {
    const auto [axis, is_new] = axis_names_.try_emplace(work.call->ranks);
    if (is_new) axis->second = plan_.input.mesh.group_name(axes_of(work.call->ranks, plan_.input));
    for (SimulatedStep::Call& call : state_.result.calls)
      if (call.operation == work.call->operation && call.axis == axis->second) return call;
    return state_.result.calls.emplace_back(
        SimulatedStep::Call{axis->second, work.call->operation});
  }

  /// The time at which a group's call begins, and its cost.
  struct Begin {
    double at = 0;
    Cost cost{};
  };
  /// Returns the Begin of each group's call, by leader. A call costs as much as on the rank where
  /// it costs most.
  std::vector<Begin> begins(const Work& work, const std::vector<Cost>& costs,
                            const Members& members) {
    Seconds& busy_until = state_.links[work.call->ranks];
    busy_until.resize(kinds_.size());
    std::vector<Begin> begins(kinds_.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t k = members[i], leader = leader_of(work.call->ranks, k);
      Begin& begin = begins[leader];
      begin.at = std::max({begin.at, state_.now[k] + state_.lag[k], busy_until[leader]});
      state_.lag[k] = 0;
      begin.cost.seconds = std::max(begin.cost.seconds, costs[i].seconds);
      begin.cost.exposed = std::max(begin.cost.exposed, costs[i].exposed);
    }
    return begins;
  }

  /// Executes a blocking call.
  void communicate(const Work& work, const std::vector<Cost>& costs, const Members& members) {
    const std::vector<Begin> begin = begins(work, costs, members);
    SimulatedStep::Call& total = row(work);
    for (const std::size_t k : members) {
      const Begin& mine = begin[leader_of(work.call->ranks, k)];
      if (mine.cost.seconds == 0) continue;
      total.calls += kinds_.share[k];
      total.seconds += mine.cost.seconds * kinds_.share[k];
      total.waiting += (mine.at - state_.now[k]) * kinds_.share[k];
      state_.now[k] = state_.links[work.call->ranks][k] = mine.at + mine.cost.seconds;
    }
  }

  using Flight = std::pair<RankSet, Size>;  ///< ranks and bucket of a started call

  /// Starts a non-blocking call. It costs the rank nothing until its finish.
  void start(const Work& work, const std::vector<Cost>& costs, const Members& members) {
    const std::vector<Begin> begin = begins(work, costs, members);
    Seconds& busy_until = state_.links[work.call->ranks];
    std::vector<Begin>& flight = in_flight_[{work.call->ranks, work.number}];
    flight.resize(kinds_.size());
    for (const std::size_t k : members) {  // only the entries of leaders are read
      busy_until[k] = begin[k].at + begin[k].cost.seconds;
      flight[k] = begin[k];
      row(work).calls += kinds_.share[k];
    }
  }

  /// Finishes a started call.
  void finish(const Work& work, const Members& members) {
    const std::vector<Begin>& flight = in_flight_.at({work.call->ranks, work.number});
    for (const std::size_t k : members)
      arrive(k, flight[leader_of(work.call->ranks, k)], row(work));
  }

  /// Advances the clock of kind `k` to the end of a started call: it waits for the hidden part and
  /// spends the exposed part itself.
  void arrive(std::size_t k, const Begin& started, SimulatedStep::Call& total) {
    const double idle = std::max(0.0, started.at - state_.now[k]);  // until the last rank starts
    const double exposed = std::min(started.cost.exposed, started.cost.seconds);
    const double ready = started.at + started.cost.seconds - exposed;
    const double end = std::max(state_.now[k], ready) + exposed;
    total.seconds += (end - state_.now[k] - idle) * kinds_.share[k];
    total.waiting += idle * kinds_.share[k];
    state_.now[k] = end;
  }

  /// Sends from each rank of a stage to the rank of the peer stage with the same other coordinates.
  void send(const Piece& piece, std::size_t stage) {
    const Work& work = piece.costed->work;
    std::vector<Begin>& flight = messages_[{static_cast<std::size_t>(work.peer), piece.number}];
    flight.resize(kinds_.size());
    for (std::size_t i = 0; i < of_stage_[stage].size(); ++i) {
      const std::size_t k = of_stage_[stage][i];
      flight[leader_of(RankSet::pipeline, k)] = {state_.now[k], piece.costed->costs[i]};
      state_.lag[k] = 0;  // lags of passes average out over the many passes of a step
      row(work).calls += kinds_.share[k];
    }
  }

  /// Waits for the message that send() recorded.
  void receive(const Piece& piece, std::size_t stage) {
    const auto flight = messages_.extract({stage, piece.number});
    SimulatedStep::Call& total = row(piece.costed->work);
    for (const std::size_t k : of_stage_[stage])
      arrive(k, flight.mapped()[leader_of(RankSet::pipeline, k)], total);
  }

  const Plan& plan_;
  const CostOf& cost_;
  const RankKinds& kinds_;
  State state_;
  std::map<RankSet, std::string> axis_names_;
  std::vector<WorkSizes> sizes_;   ///< by kind
  std::vector<Size> samples_;      ///< by kind
  std::vector<Members> of_stage_;  ///< by stage, its kinds
  Members all_;                    ///< all kinds
  std::vector<Size> first_equal_;  ///< by microbatch, the first one with equal work; empty: itself
  std::vector<std::unordered_map<ActionKey, std::vector<CostedWork>, HashOfKey>>
      known_;                                       ///< by stage
  std::map<Flight, std::vector<Begin>> in_flight_;  ///< by leader, each started call
  /// The sent messages by receiving stage and number, each by leader in RankSet::pipeline.
  std::map<std::pair<std::size_t, Size>, std::vector<Begin>> messages_;
};

}  // namespace

double SimulatedStep::launches() const {
  return products.launches + kernels.launches + update.launches;
}

double SimulatedStep::communication() const {
  return std::accumulate(calls.begin(), calls.end(), 0.0,
                         [](double sum, const Call& call) { return sum + call.seconds; });
}

double SimulatedStep::waiting() const {
  return std::accumulate(calls.begin(), calls.end(), 0.0,
                         [](double sum, const Call& call) { return sum + call.waiting; });
}

SimulatedStep simulate(const Plan& plan, const CostOf& cost, const RankKinds& kinds) {
  return Simulator(plan, cost, kinds).step();
}

SimulatedStep simulate(const Plan& plan, const CostOf& cost) {
  return simulate(plan, cost, rank_kinds(plan));
}

}  // namespace tessera
