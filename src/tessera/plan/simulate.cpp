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
      : plan_(plan), cost_(cost), now_(num_ranks()), lag_(num_ranks()), class_of_(num_ranks()) {
    const std::vector<Size> first = ranks_with_equal_work(plan);
    std::map<Size, std::size_t> classes;
    for (std::size_t r = 0; r < num_ranks(); ++r) {
      const auto [at, is_new] = classes.try_emplace(first[r], sizes_.size());
      if (is_new) sizes_.push_back(work_sizes(plan, first[r]));
      class_of_[r] = at->second;
    }
  }

  /// The second step is measured: its ranks begin as far apart as a step leaves them.
  SimulatedStep step() {
    const std::vector<CostedWork> works = costed_works();
    carry_out(works);
    const double begin = *std::max_element(now_.begin(), now_.end());
    result_ = {};
    carry_out(works);
    result_.step_seconds = *std::max_element(now_.begin(), now_.end()) - begin;
    return result_;
  }

 private:
  using Seconds = std::vector<double>;  ///< seconds of each rank
  std::size_t num_ranks() const { return static_cast<std::size_t>(plan_.input.mesh.num_ranks()); }
  double share() const { return 1 / static_cast<double>(num_ranks()); }

  struct CostedWork {
    Work work;
    std::vector<Cost> costs;  ///< of each class
  };

  std::vector<CostedWork> costed_works() const {
    std::vector<CostedWork> all;
    for (const Action& action : plan_.stages.front().actions) {
      std::vector<std::vector<Work>> works;  // of each class
      for (const WorkSizes& sizes : sizes_) works.push_back(work_of(action, plan_, sizes));
      for (std::size_t i = 0; i < works.front().size(); ++i) {
        std::vector<Cost> costs;
        for (const auto& of_class : works)
          costs.push_back(of_class[i].size > 0 ? cost_(of_class[i]) : Cost());
        all.push_back({works.front()[i], std::move(costs)});
      }
    }
    return all;
  }

  void carry_out(const std::vector<CostedWork>& works) {
    for (const CostedWork& one : works) work(one.work, one.costs);
  }

  /// `costs`: of each class.
  void work(const Work& work, const std::vector<Cost>& costs) {
    if (!work.ranks) return compute(work, costs);
    switch (work.phase) {
      case Work::Phase::whole:
        return communicate(work, costs);
      case Work::Phase::started:
        return start(work, costs);
      case Work::Phase::finishes:
        return finish(work);
    }
  }

  void compute(const Work& work, const std::vector<Cost>& costs) {
    double& part = work.has_products               ? result_.products
                   : work.kind == WorkKind::update ? result_.update
                                                   : result_.kernels;
    for (std::size_t r = 0; r < num_ranks(); ++r) {
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
  std::vector<Begin> begins(const Work& work, const std::vector<Cost>& costs) {
    const std::vector<Size>& leader = groups(*work.ranks);
    std::vector<double>& busy_until = links_[*work.ranks];
    busy_until.resize(num_ranks());
    std::vector<Begin> begins(num_ranks());
    for (std::size_t r = 0; r < num_ranks(); ++r) {
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

  void communicate(const Work& work, const std::vector<Cost>& costs) {
    const std::vector<Size>& leader = groups(*work.ranks);
    const std::vector<Begin> begin = begins(work, costs);
    SimulatedStep::Call& total = row(work);
    for (std::size_t r = 0; r < num_ranks(); ++r) {
      const Begin& mine = begin[static_cast<std::size_t>(leader[r])];
      if (mine.cost.seconds == 0) continue;
      total.calls += share();
      total.seconds += mine.cost.seconds * share();
      total.waiting += (mine.at - now_[r]) * share();
      now_[r] = links_[*work.ranks][r] = mine.at + mine.cost.seconds;
    }
  }

  using Flight = std::pair<RankSet, Size>;  ///< bucket

  void start(const Work& work, const std::vector<Cost>& costs) {
    std::vector<Begin> begin = begins(work, costs);
    std::vector<double>& busy_until = links_[*work.ranks];
    for (std::size_t r = 0; r < num_ranks(); ++r)
      busy_until[r] = begin[r].at + begin[r].cost.seconds;  // read at the groups' first ranks only
    row(work).calls += 1;
    in_flight_[{*work.ranks, work.bucket}] = std::move(begin);
  }

  void finish(const Work& work) {
    const std::vector<Size>& leader = groups(*work.ranks);
    SimulatedStep::Call& total = row(work);
    for (std::size_t r = 0; r < num_ranks(); ++r) {
      const Begin& started =
          in_flight_.at({*work.ranks, work.bucket})[static_cast<std::size_t>(leader[r])];
      const double idle = std::max(0.0, started.at - now_[r]);  // for ranks that start it later
      const double exposed = std::min(started.cost.exposed, started.cost.seconds);
      const double ready = started.at + started.cost.seconds - exposed;
      const double end = std::max(now_[r], ready) + exposed;
      total.seconds += (end - now_[r] - idle) * share();
      total.waiting += idle * share();
      now_[r] = end;
    }
    in_flight_.erase({*work.ranks, work.bucket});
  }

  const Plan& plan_;
  const CostOf& cost_;
  Seconds now_;
  Seconds lag_;                        ///< that nobody has waited for yet
  std::vector<WorkSizes> sizes_;       ///< of each class of ranks that do equal work
  std::vector<std::size_t> class_of_;  ///< of each rank
  std::map<RankSet, std::vector<Size>> leaders_;
  std::map<RankSet, std::vector<double>> links_;  ///< when the group's latest call ends
  std::map<Flight, std::vector<Begin>> in_flight_;
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
