// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>

#include <tessera/plan/simulate.hpp>

namespace tessera {
namespace {

/// The first rank of each rank's group in a set of ranks.
std::vector<Size> leaders(const MeshShape& mesh, const std::vector<std::string>& axes) {
  std::vector<Size> leaders;
  for (Size rank = 0; rank < mesh.num_ranks(); ++rank) {
    std::vector<Size> at = mesh.coordinates(rank);
    for (const std::size_t axis : mesh.effective(axes)) at[axis] = 0;
    leaders.push_back(mesh.rank_at(at));
  }
  return leaders;
}

class Simulator {
 public:
  Simulator(const Plan& plan, const CostOf& cost)
      : plan_(plan),
        cost_(cost),
        now_(num_ranks()),
        lag_(num_ranks()),
        class_of_(num_ranks()),
        ranks_(plan.stages.size()) {
    const std::vector<Size> first = ranks_with_equal_work(plan);
    std::map<Size, std::size_t> classes;
    for (std::size_t r = 0; r < num_ranks(); ++r) {
      const auto [at, is_new] = classes.try_emplace(first[r], sizes_.size());
      if (is_new) sizes_.push_back(work_sizes(plan, first[r]));
      class_of_[r] = at->second;
      ranks_[static_cast<std::size_t>(plan.stage_number(static_cast<Size>(r)))].push_back(r);
      all_ranks_.push_back(r);
    }
  }

  /// The second step is measured: its ranks begin as far apart as a step leaves them.
  SimulatedStep step() {
    std::vector<std::vector<CostedWork>> works;  // of each stage
    for (std::size_t s = 0; s < ranks_.size(); ++s)
      works.push_back(costed_works(static_cast<Size>(s)));
    carry_out(works);
    const double begin = *std::max_element(now_.begin(), now_.end());
    result_ = {};
    carry_out(works);
    result_.step_seconds = *std::max_element(now_.begin(), now_.end()) - begin;
    return result_;
  }

 private:
  using Seconds = std::vector<double>;  ///< seconds of each rank
  using Ranks = std::vector<std::size_t>;
  std::size_t num_ranks() const { return static_cast<std::size_t>(plan_.input.mesh.num_ranks()); }
  double share() const { return 1 / static_cast<double>(num_ranks()); }

  struct CostedWork {
    Work work;
    std::vector<Cost> costs;  ///< of each class; nothing where it belongs to another stage
    bool meets_other_stages = false;
  };

  std::vector<CostedWork> costed_works(Size stage) const {
    std::vector<CostedWork> all;
    for (const Action& action : plan_.stages[static_cast<std::size_t>(stage)].actions) {
      std::vector<Work> first;
      std::vector<std::vector<Cost>> costs;  // by piece of work
      for (std::size_t c = 0; c < sizes_.size(); ++c) {
        if (sizes_[c].calls.stage != stage) continue;
        const std::vector<Work> works = work_of(action, plan_, sizes_[c]);
        if (first.empty()) {
          first = works;
          costs.assign(works.size(), std::vector<Cost>(sizes_.size()));
        }
        for (std::size_t i = 0; i < works.size(); ++i)
          if (works[i].size > 0) costs[i][c] = cost_(works[i]);
      }
      for (std::size_t i = 0; i < first.size(); ++i)
        all.push_back({first[i], std::move(costs[i]), meets_other_stages(first[i])});
    }
    return all;
  }

  /// Stages go on until they wait for a message or for each other.
  void carry_out(const std::vector<std::vector<CostedWork>>& works) {
    std::vector<std::size_t> next(works.size());
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t s = 0; s < works.size(); ++s)
        while (next[s] < works[s].size()) {
          const CostedWork& one = works[s][next[s]];
          if (one.meets_other_stages || !has_arrived(one.work, s)) break;
          work(one.work, one.costs, ranks_[s], s);
          ++next[s];
          moves = true;
        }
      if (!moves && next[0] < works[0].size()) {
        const CostedWork& common = works[0][next[0]];
        std::vector<Cost> costs(sizes_.size());
        for (std::size_t s = 0; s < works.size(); ++s) {
          const std::vector<Cost>& own = works[s].at(next[s]++).costs;
          for (std::size_t c = 0; c < costs.size(); ++c)
            if (static_cast<std::size_t>(sizes_[c].calls.stage) == s) costs[c] = own[c];
        }
        work(common.work, costs, all_ranks_, 0);
        moves = true;
      }
    }
  }

  bool meets_other_stages(const Work& work) const {
    if (ranks_.size() == 1 || !work.ranks || work.kind == WorkKind::message) return false;
    const std::vector<std::string> axes = axes_of(*work.ranks, plan_.input);
    return std::find(axes.begin(), axes.end(), "pipeline") != axes.end();
  }
  bool has_arrived(const Work& work, std::size_t stage) const {
    return work.kind != WorkKind::message || work.phase != Work::Phase::finishes ||
           messages_.contains({stage, work.bucket});
  }

  /// `costs`: of each class.
  void work(const Work& work, const std::vector<Cost>& costs, const Ranks& ranks,
            std::size_t stage) {
    if (!work.ranks) return compute(work, costs, ranks);
    if (work.kind == WorkKind::message)
      return work.phase == Work::Phase::started ? send(work, costs, stage) : receive(work, stage);
    switch (work.phase) {
      case Work::Phase::whole:
        return communicate(work, costs, ranks);
      case Work::Phase::started:
        return start(work, costs, ranks);
      case Work::Phase::finishes:
        return finish(work, ranks);
    }
  }

  void compute(const Work& work, const std::vector<Cost>& costs, const Ranks& ranks) {
    double& part = work.has_products               ? result_.products
                   : work.kind == WorkKind::update ? result_.update
                                                   : result_.kernels;
    for (const std::size_t r : ranks) {
      const double seconds = costs[class_of_[r]].seconds;
      now_[r] += seconds;
      lag_[r] += costs[class_of_[r]].lag;
      part += seconds * share();
    }
  }

  const std::vector<Size>& groups(RankSet ranks) {
    std::vector<Size>& made = leaders_[ranks];
    if (made.empty()) made = leaders(plan_.input.mesh, axes_of(ranks, plan_.input));
    return made;
  }

  SimulatedStep::Call& row(const Work& work) {
    const std::string axis = plan_.input.mesh.group_name(axes_of(*work.ranks, plan_.input));
    for (SimulatedStep::Call& call : result_.calls)
      if (call.axis == axis && call.operation == work.operation) return call;
    return result_.calls.emplace_back(SimulatedStep::Call{axis, work.operation});
  }

  struct Begin {
    double at = 0;
    Cost cost{};
  };
  /// When each group's call begins, which lasts as long as on the rank where it lasts longest.
  std::vector<Begin> begins(const Work& work, const std::vector<Cost>& costs, const Ranks& ranks) {
    const std::vector<Size>& leader = groups(*work.ranks);
    std::vector<double>& busy_until = links_[*work.ranks];
    busy_until.resize(num_ranks());
    std::vector<Begin> begins(num_ranks());
    for (const std::size_t r : ranks) {
      const auto group = static_cast<std::size_t>(leader[r]);
      const Cost& cost = costs[class_of_[r]];
      Begin& begin = begins[group];
      begin.at = std::max({begin.at, now_[r] + lag_[r], busy_until[group]});
      lag_[r] = 0;
      begin.cost.seconds = std::max(begin.cost.seconds, cost.seconds);
      begin.cost.exposed = std::max(begin.cost.exposed, cost.exposed);
    }
    return begins;
  }

  void communicate(const Work& work, const std::vector<Cost>& costs, const Ranks& ranks) {
    const std::vector<Size>& leader = groups(*work.ranks);
    const std::vector<Begin> begin = begins(work, costs, ranks);
    SimulatedStep::Call& total = row(work);
    for (const std::size_t r : ranks) {
      const Begin& mine = begin[static_cast<std::size_t>(leader[r])];
      if (mine.cost.seconds == 0) continue;
      total.calls += share();
      total.seconds += mine.cost.seconds * share();
      total.waiting += (mine.at - now_[r]) * share();
      now_[r] = links_[*work.ranks][r] = mine.at + mine.cost.seconds;
    }
  }

  using Flight = std::pair<RankSet, Size>;  ///< bucket

  void start(const Work& work, const std::vector<Cost>& costs, const Ranks& ranks) {
    const std::vector<Begin> begin = begins(work, costs, ranks);
    std::vector<double>& busy_until = links_[*work.ranks];
    std::vector<Begin>& flight = in_flight_[{*work.ranks, work.bucket}];
    flight.resize(num_ranks());
    for (const std::size_t r : ranks) {  // read at the groups' first ranks only
      busy_until[r] = begin[r].at + begin[r].cost.seconds;
      flight[r] = begin[r];
    }
    row(work).calls += share() * static_cast<double>(ranks.size());
  }

  void finish(const Work& work, const Ranks& ranks) {
    const std::vector<Size>& leader = groups(*work.ranks);
    const std::vector<Begin>& flight = in_flight_.at({*work.ranks, work.bucket});
    for (const std::size_t r : ranks)
      arrive(r, flight[static_cast<std::size_t>(leader[r])], row(work));
  }

  /// The rank waits for what others have started, and takes the exposed part itself.
  void arrive(std::size_t r, const Begin& started, SimulatedStep::Call& total) {
    const double idle = std::max(0.0, started.at - now_[r]);  // for ranks that start it later
    const double exposed = std::min(started.cost.exposed, started.cost.seconds);
    const double ready = started.at + started.cost.seconds - exposed;
    const double end = std::max(now_[r], ready) + exposed;
    total.seconds += (end - now_[r] - idle) * share();
    total.waiting += idle * share();
    now_[r] = end;
  }

  /// Each rank of the stage to the one with its coordinates on the other.
  void send(const Work& work, const std::vector<Cost>& costs, std::size_t stage) {
    std::vector<Begin>& flight = messages_[{static_cast<std::size_t>(work.peer), work.bucket}];
    for (const std::size_t r : ranks_[stage]) {
      flight.push_back({now_[r], costs[class_of_[r]]});
      lag_[r] = 0;  // what one pass lags behind, the next one makes up for: many messages follow
    }
    row(work).calls += share() * static_cast<double>(ranks_[stage].size());
  }

  void receive(const Work& work, std::size_t stage) {
    const auto flight = messages_.extract({stage, work.bucket});
    for (std::size_t i = 0; i < ranks_[stage].size(); ++i)
      arrive(ranks_[stage][i], flight.mapped()[i], row(work));
  }

  const Plan& plan_;
  const CostOf& cost_;
  Seconds now_;
  Seconds lag_;                        ///< that nobody has waited for yet
  std::vector<WorkSizes> sizes_;       ///< of each class of ranks that do equal work
  std::vector<std::size_t> class_of_;  ///< of each rank
  std::vector<Ranks> ranks_;           ///< of each stage
  Ranks all_ranks_;
  std::map<RankSet, std::vector<Size>> leaders_;
  std::map<RankSet, std::vector<double>> links_;  ///< when the group's latest call ends
  std::map<Flight, std::vector<Begin>> in_flight_;
  /// By the stage that receives and number, of each of its ranks.
  std::map<std::pair<std::size_t, Size>, std::vector<Begin>> messages_;
  SimulatedStep result_;
};

}  // namespace

double SimulatedStep::communication() const {
  return std::accumulate(calls.begin(), calls.end(), 0.0,
                         [](double sum, const Call& call) { return sum + call.seconds; });
}

double SimulatedStep::waiting() const {
  return std::accumulate(calls.begin(), calls.end(), 0.0,
                         [](double sum, const Call& call) { return sum + call.waiting; });
}

SimulatedStep simulate(const Plan& plan, const CostOf& cost) {
  return Simulator(plan, cost).step();
}

}  // namespace tessera
