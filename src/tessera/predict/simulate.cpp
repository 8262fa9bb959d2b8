// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <tessera/plan/pipeline/pipeline_actions.hpp>
#include <tessera/predict/simulate.hpp>

namespace tessera {
namespace {

using Seconds = std::vector<double>;       // by kind
using Members = std::vector<std::size_t>;  // kinds that do one piece of work together

/// A call of a group, or a message, that has begun.
struct Flight {
  double begin = 0;
  Cost cost{};             ///< as on the rank where it costs most
  bool is_issued = false;  ///< false: no rank has anything to send
};

using Flights = std::vector<Flight>;                 ///< by leader
using Key = std::tuple<AxisSet, std::size_t, Size>;  ///< ranks, stage, number

/// The numbers that change while a step is simulated.
struct SimulatedState {
  Seconds now;                         ///< the clocks
  Seconds lag;                         ///< lag since the last call
  std::map<AxisSet, Seconds> links{};  ///< by axes and leader, the end of the latest call
  std::map<Key, std::deque<Flights>> in_flight{};  ///< started calls, the first one in front
  SimulatedStep result{};

  /// Visits clocks first, then all other times.
  template <class Visit>
  void for_each_time(const Visit& visit) {
    for (Seconds* all : {&now, &lag}) std::for_each(all->begin(), all->end(), visit);
    for (auto& [ranks, until] : links) std::for_each(until.begin(), until.end(), visit);
    for (auto& [key, sent] : in_flight)
      for (Flights& flights : sent)
        for (Flight& flight : flights) visit(flight.begin);
  }
  template <class Visit>
  void for_each_number(const Visit& visit) {
    for_each_time(visit);
    for (auto* part : {&result.products, &result.kernels, &result.update})
      visit(part->work), visit(part->launches);
    for (SimulatedStep::Call& call : result.calls)
      visit(call.calls), visit(call.seconds), visit(call.lasting), visit(call.waiting);
  }
};

/// Simulates a step with one clock per kind.
class Simulator {
 public:
  Simulator(const Plan& plan, const CostOf& cost, const RankKinds& kinds, const Software& software)
      : kinds_(kinds),
        works_(plan, cost, kinds, software),
        all_(kinds.size()),
        state_{Seconds(kinds.size()), Seconds(kinds.size())} {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  /// Simulates two steps and returns the times of the second, in which ranks begin at the different
  /// times at which they end a step.
  SimulatedStep step() {
    const std::vector<StepPart> parts = works_.parts();
    for (const StepPart& part : parts) repeat(part);
    const Seconds begin = state_.now;
    state_.result = {};
    for (const StepPart& part : parts) repeat(part);
    for (std::size_t k = 0; k < begin.size(); ++k)
      state_.result.step_seconds = std::max(state_.result.step_seconds, state_.now[k] - begin[k]);
    return state_.result;
  }

 private:
  /// Simulates a part. Without stages, each repetition after the 64th takes as long as the 64th.
  /// Stages wait for each other in a pattern that soon returns, after one repetition or as many as
  /// a message needs for its way through the stages and back. Once it does, whole patterns are left
  /// out.
  void repeat(const StepPart& part) {
    constexpr Size most = 64;
    const auto stages = static_cast<Size>(part.works.size());
    std::deque<Seconds> earlier;  // numbers, the latest ones first
    for (Size left = part.times; left > 0;) {
      if (stages > 1 || left == part.times - most + 1) {
        earlier.emplace_front();
        state_.for_each_number([&](double number) { earlier.front().push_back(number); });
      }
      carry_out(part.works);
      --left;
      for (Size turns = 1; turns <= std::min(left, std::ssize(earlier)); ++turns) {
        const Seconds& then = earlier[static_cast<std::size_t>(turns - 1)];
        if (stages > 1 && !returns_to(then)) continue;
        const Size patterns = left / turns;
        const auto more = static_cast<double>(patterns);
        auto at = then.begin();
        state_.for_each_number([&](double& number) { number += more * (number - *at++); });
        left %= turns;
        earlier.clear();
      }
      if (std::ssize(earlier) > 2 * stages) earlier.pop_back();
    }
  }

  /// Returns true if the state is the one of these earlier numbers at a later time: all clocks have
  /// advanced alike, and so have links and calls in flight, or they are not in use.
  bool returns_to(const Seconds& then) {
    const double by = state_.now[0] - then[0], tolerance = 1e-12 * state_.now[0];
    std::size_t i = 0, same = 0, all = 0;
    state_.for_each_number([&](double) { ++all; });
    if (all != then.size()) return false;
    state_.for_each_time([&](double time) {
      const double advanced = time - then[i];
      same += std::abs(advanced - by) <= tolerance ||
              (i >= all_.size() && std::abs(advanced) <= tolerance);
      ++i;
    });
    return same == i;
  }

  /// Executes the work of all stages once. Each stage advances until it waits for a message or for
  /// a call over several stages. Such a call is executed when all stages wait for it.
  void carry_out(const StageWorks& works) {
    std::vector<std::size_t> next(works.size());
    for (;;) {
      advance_stages(works, next, [&](std::size_t stage, const CostedWork* work) {
        const CostedWork& entry = *work;
        if (entry.meets_other_stages || !has_arrived(entry, stage)) return false;
        execute(entry, entry.costs, members(stage), stage);
        return true;
      });
      if (next[0] == works[0].size()) return;
      std::vector<Cost> costs(all_.size());
      for (std::size_t s = 0; s < works.size(); ++s) {
        const std::vector<Cost>& own = works[s].at(next[s])->costs;
        for (std::size_t i = 0; i < own.size(); ++i) costs[members(s)[i]] = own[i];
      }
      execute(*works[0][next[0]], costs, all_, 0);
      for (std::size_t& position : next) ++position;
    }
  }

  const Members& members(std::size_t stage) const { return works_.kinds_by_stage()[stage]; }

  bool has_arrived(const CostedWork& entry, std::size_t stage) const {
    const Work& work = entry.work;
    return !work.is_message() || work.call->phase != Phase::finish ||
           state_.in_flight.contains(key_of(entry, stage));
  }

  /// Executes one piece of work on the kinds `members`. `costs` holds a cost per member.
  void execute(const CostedWork& entry, const std::vector<Cost>& costs, const Members& members,
               std::size_t stage) {
    const Work& work = entry.work;
    if (!work.call) return compute(work, costs, members);
    if (work.call->phase != Phase::finish) start(entry, costs, members, stage);
    if (work.call->phase != Phase::start) finish(entry, costs, members, stage);
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

  /// A message belongs to the stage that receives it. Other started calls are finished before the
  /// next one with their number starts.
  static Key key_of(const CostedWork& entry, std::size_t stage) {
    const Work& work = entry.work;
    const bool is_sent = work.is_message() && work.call->phase == Phase::start;
    return {work.call->ranks, is_sent ? static_cast<std::size_t>(work.peer) : stage, work.number};
  }
  std::size_t leader_of(AxisSet ranks, std::size_t kind) const {
    return static_cast<std::size_t>(kinds_.leader.at(ranks)[kind]);
  }

  /// Begins the call of each group. It costs a rank nothing until it finishes the call. A message
  /// goes from each rank of a stage to the rank of the peer stage with the same other coordinates.
  void start(const CostedWork& entry, const std::vector<Cost>& costs, const Members& members,
             std::size_t stage) {
    const Work& work = entry.work;
    const AxisSet ranks = work.call->ranks;
    Flights& flights = state_.in_flight[key_of(entry, stage)].emplace_back(kinds_.size());
    Seconds& link_until = state_.links[ranks];
    link_until.resize(kinds_.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t k = members[i], leader = leader_of(ranks, k);
      Flight& flight = flights[leader];
      flight.is_issued |= costs[i].is_issued;
      // The lags of the passes between messages average out over a step.
      const double ready = work.is_message()
                               ? state_.now[k]
                               : std::max(state_.now[k] + state_.lag[k], link_until[leader]);
      state_.lag[k] = 0;
      flight.begin = std::max(flight.begin, ready);
      flight.cost.seconds = std::max(flight.cost.seconds, costs[i].seconds);
      flight.cost.exposed =
          std::max(flight.cost.exposed,
                   work.call->phase == Phase::whole ? costs[i].seconds : costs[i].exposed);
    }
    SimulatedStep::Call& total = row(entry);
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!costs[i].is_issued) continue;
      const std::size_t k = members[i], leader = leader_of(ranks, k);
      const Flight& flight = flights[leader];
      total.calls += kinds_.share[k];
      total.lasting += flight.cost.seconds * kinds_.share[k];
      link_until[leader] = flight.begin + flight.cost.seconds;
    }
  }

  /// Finishes a call or receives a message. A rank waits for the hidden part and spends the exposed
  /// part itself.
  void finish(const CostedWork& entry, const std::vector<Cost>& costs, const Members& members,
              std::size_t stage) {
    const auto sent = state_.in_flight.find(key_of(entry, stage));
    const Flights flights = std::move(sent->second.front());
    sent->second.pop_front();
    if (sent->second.empty()) state_.in_flight.erase(sent);
    SimulatedStep::Call& total = row(entry);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t k = members[i];
      const Flight& flight = flights[leader_of(entry.work.call->ranks, k)];
      const bool is_whole = entry.work.call->phase == Phase::whole;
      if (!(is_whole ? costs[i].is_issued : flight.is_issued)) continue;
      double& now = state_.now[k];
      const double idle = std::max(0.0, flight.begin - now);  // until the last rank starts
      const double exposed = std::min(flight.cost.exposed, flight.cost.seconds);
      const double end = std::max(now, flight.begin + (flight.cost.seconds - exposed)) + exposed;
      total.seconds += (end - now - idle) * kinds_.share[k];
      total.waiting += idle * kinds_.share[k];
      now = end;
    }
  }

  /// Returns the sums of the calls with this axis and operation.
  SimulatedStep::Call& row(const CostedWork& costed) {
    const Operation operation = costed.work.call->operation;
    for (SimulatedStep::Call& call : state_.result.calls)
      if (call.operation == operation && call.axis == costed.axis) return call;
    return state_.result.calls.emplace_back(SimulatedStep::Call{costed.axis, operation});
  }

  const RankKinds& kinds_;
  StepWorks works_;
  Members all_;  ///< all kinds
  SimulatedState state_;
};

}  // namespace

std::string SimulatedStep::Call::name() const {
  return fmt::format("{} on {}", name_of(operation), axis);
}

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

std::vector<std::pair<std::string, double>> SimulatedStep::parts() const {
  std::vector<std::pair<std::string, double>> parts{{"products", products.work},
                                                    {"other kernels", kernels.work},
                                                    {"optimizer", update.work},
                                                    {"launches of kernels", launches()}};
  for (const Call& call : calls) parts.emplace_back(call.name(), call.seconds);
  parts.emplace_back("waiting for other ranks", waiting());
  return parts;
}

SimulatedStep simulate(const Plan& plan, const CostOf& cost, const RankKinds& kinds,
                       const Software& software) {
  return Simulator(plan, cost, kinds, software).step();
}

SimulatedStep simulate(const Plan& plan, const CostOf& cost) {
  return simulate(plan, cost, rank_kinds(plan));
}

}  // namespace tessera
