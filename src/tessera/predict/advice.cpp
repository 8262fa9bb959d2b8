// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/predict/advice.hpp>
#include <tessera/predict/rank_kinds.hpp>
#include <tessera/predict/step_bounds.hpp>

namespace tessera {
namespace {

/// Returns the meshes that are tried for a strategy. `own` are further axes.
std::vector<MeshShape> meshes_for(const StrategyRow& strategy, Size ranks,
                                  const std::vector<std::string>& own) {
  if (ranks == 1) return {usual_mesh(std::string(strategy.name), ranks)};
  std::vector<std::string> axes{"pipeline"};
  for (const std::string_view axis : strategy.usual_axes)
    if (!axis.empty()) axes.emplace_back(axis);
  axes.insert(axes.end(), own.begin(), own.end());
  axes.emplace_back("model");
  return factorisations(ranks, axes);
}

/// Returns false if the step of a sharding strategy equals that of another strategy, which is tried
/// as well: it shards nothing on this mesh, or it is `hybrid` without shards or without replicas.
bool is_used(const StrategyRow& strategy, const MeshShape& mesh) {
  if (strategy.shards == Sharding{}) return true;
  if (!strategy.over_fsdp_only)
    return mesh.group_size(shard_axes(*value_named<Strategy>(strategy.name), mesh)) > 1;
  return std::all_of(strategy.usual_axes.begin(), strategy.usual_axes.end(),
                     [&](auto axis) { return axis.empty() || mesh.size_of(axis) > 1; });
}

/// A strategy on a mesh, and a way of attention.
struct Way {
  const StrategyRow* strategy;
  MeshShape mesh;
  Config config;                        ///< with all of it
  std::vector<Size> numbers{};          ///< of microbatches
  std::vector<double> bounds{};         ///< seconds, by number of microbatches
  bool is_hopeless = false;             ///< parameters, gradients and moments alone are too large
  bool has_fit = false;                 ///< a candidate fits in memory
  std::optional<Candidate> smallest{};  ///< of those that do not
};

/// A candidate that waits for its turn: the smallest bound is tried first.
struct Entry {
  double bound = 0;
  std::size_t way = 0, number = 0;  ///< positions in the list of ways, and in its `numbers`
  std::size_t recomputed = 0;       ///< position in the list of recomputations
  friend bool operator<(const Entry& a, const Entry& b) {
    return std::tie(a.bound, a.way, a.recomputed, a.number) <
           std::tie(b.bound, b.way, b.recomputed, b.number);
  }
};

class Search {
 public:
  Search(const Config& config, Size ranks, const Machine& machine, const SearchOptions& options)
      : config_(config), ranks_(ranks), machine_(machine), options_(options), bounds_(machine) {
    if (config.model.kind == ModelKind::transformer)
      recomputations_.back() = {.what = Recomputed::block};
  }

  Advice run() {
    find_attention();
    if (ranks_ < 1 || ranks_ > machine_.ranks())
      throw ConfigError("--ranks", std::to_string(ranks_),
                        "must be from 1 to {}, the number of ranks of machine {}",
                        with_thousands(machine_.ranks()), machine_.name);
    for (const StrategyRow& strategy : strategies) {
      // The step of `tensor` equals that of `data` on a mesh with the axis model only.
      if (!strategy.splits_batch) continue;
      for (const MeshShape& mesh : meshes_for(strategy, ranks_, own_axes()))
        if (is_used(strategy, mesh)) add_ways(strategy, mesh);
    }
    while (!queue_.empty() && queue_.begin()->bound <= limit())
      try_entry(queue_.extract(queue_.begin()).value());
    if (queue_.empty() && !has_fit_) try_hopeless();
    for (Way& way : ways_)
      if (!way.has_fit && way.smallest) advice_.too_large.push_back(std::move(*way.smallest));
    if (queue_.empty() && !has_fit_ && advice_.too_large.empty())
      throw ConfigError("--ranks", std::to_string(ranks_),
                        "no mesh of this many ranks can run this configuration: " + problem_);
    std::stable_sort(
        advice_.too_large.begin(), advice_.too_large.end(),
        [](const Candidate& a, const Candidate& b) { return a.memory_bytes < b.memory_bytes; });
    return std::move(advice_);
  }

 private:
  /// Finds the ways of attention to try on meshes with an axis `context`: none if samples have one
  /// position, the default if the model has no attention. Candidates report an invalid model.
  void find_attention() {
    try {
      const ModelSpec model = make_model(config_);
      if (model.input_positions == 1) return;
      attention_ = {ContextAttention::gather};
      if (attends(model))
        attention_ = {ContextAttention::gather, ContextAttention::ring,
                      ContextAttention::all_to_all};
    } catch (const ConfigError&) {
    }
  }

  /// Returns the axes that the model adds to those of a strategy.
  std::vector<std::string> own_axes() const {
    std::vector<std::string> axes;
    if (config_.model.transformer.experts > 0) axes.emplace_back("expert");
    if (!attention_.empty()) axes.emplace_back("context");
    return axes;
  }

  void add_ways(const StrategyRow& strategy, const MeshShape& mesh) {
    if (mesh.size_of("context") == 1) return add_way(strategy, mesh, config_);
    for (const ContextAttention way : attention_) {
      Config config = config_;
      config.training.distributed.context_attention = way;
      add_way(strategy, mesh, std::move(config));
    }
  }

  /// Adds the candidates of a strategy on a mesh to the queue. Without a pipeline, more
  /// microbatches and recomputation only cost time, so they are added when the one before does not
  /// fit. With a pipeline, more microbatches shorten the bubble.
  void add_way(const StrategyRow& strategy, const MeshShape& mesh, Config config) {
    TrainingConfig& training = config.training;
    set_mesh(training.distributed, mesh);
    training.distributed.num_nodes.reset();
    training.distributed.num_processes_per_node.reset();
    training.distributed.strategy = *value_named<Strategy>(strategy.name);
    static const Config defaults;
    for (const StrategyOption& option : strategy_options()) {
      const Setting& setting = setting_of(option.key);
      if (!applies_on(option.applies, training.distributed.strategy, mesh))
        setting.set(config, setting.get(defaults));
    }
    training.activation_checkpointing = {};
    Way way{&strategy, mesh, std::move(config)};
    const Size parts = mesh.group_size(batch_axes(mesh));
    // In a fixed order of sums, the mesh decides their number.
    const Size most =
        training.numerics.reproducible ? 1 : std::max<Size>(1, config_.training.batch_size / parts);
    for (Size number = 1; number <= most; number *= 2) way.numbers.push_back(number);
    if (way.numbers.empty() || !find_bounds(way)) return;
    advice_.candidates += static_cast<Size>(recomputations_.size() * way.numbers.size());
    ways_.push_back(std::move(way));
    if (ways_.back().is_hopeless) return;
    add_entry(ways_.size() - 1, 0, 0);
    for (std::size_t n = 1; has_stages(ways_.back()) && n < ways_.back().numbers.size(); ++n)
      add_entry(ways_.size() - 1, n, 0);
  }

  /// Plans one candidate of each way that cannot fit, to tell how much memory it needs.
  void try_hopeless() {
    for (Way& way : ways_) {
      if (!way.is_hopeless) continue;
      const Size number = has_stages(way)
                              ? std::min(way.numbers.back(), way.mesh.size_of("pipeline"))
                              : way.numbers.back();
      way.smallest = candidate(way, number, recomputations_.back());
      report();
    }
  }

  static bool has_stages(const Way& way) { return way.mesh.size_of("pipeline") > 1; }

  /// Returns false if the mesh cannot run the model. `problem_` then tells why.
  bool find_bounds(Way& way) {
    try {
      const std::vector<StepBound> found =
          bounds_.of(plan_input(way.config, way.mesh, machine_.traits()), way.numbers);
      // Sums of the same numbers in another order differ by their rounding.
      for (const StepBound& bound : found) way.bounds.push_back((1 - 1e-9) * bound.seconds);
      way.is_hopeless = found.front().memory_bytes > machine_.memory_bytes;
      return true;
    } catch (const ConfigError& error) {
      problem_ = error.what();
      return false;
    }
  }

  void add_entry(std::size_t way, std::size_t number, std::size_t recomputed) {
    queue_.insert({ways_[way].bounds[number], way, number, recomputed});
  }

  /// Returns the seconds above which a candidate is of no interest.
  double limit() const {
    const bool has_all = advice_.fits.size() == options_.best;
    return has_all ? advice_.fits.back().step.step_seconds
                   : std::numeric_limits<double>::infinity();
  }

  void try_entry(const Entry& entry) {
    Way& way = ways_[entry.way];
    if (way.has_fit && !has_stages(way)) return;
    std::optional<Candidate> made =
        candidate(way, way.numbers[entry.number], recomputations_[entry.recomputed]);
    const bool fits = made && made->memory_bytes <= machine_.memory_bytes;
    if (!fits) add_smaller(entry);
    if (fits) {
      way.has_fit = has_fit_ = true;
      keep(std::move(*made));
    } else if (made && (!way.smallest || made->memory_bytes < way.smallest->memory_bytes)) {
      way.smallest = std::move(made);
    }
    report();
  }

  void report() const {
    if (options_.progress)
      options_.progress({advice_.fits.empty() ? nullptr : &advice_.fits.front(), advice_.planned,
                         advice_.candidates});
  }

  /// Adds the candidate that needs less memory than one that does not fit.
  void add_smaller(const Entry& entry) {
    const bool keeps_number = has_stages(ways_[entry.way]);
    if (!keeps_number && entry.number + 1 < ways_[entry.way].numbers.size())
      add_entry(entry.way, entry.number + 1, entry.recomputed);
    else if (entry.recomputed + 1 < recomputations_.size())
      add_entry(entry.way, keeps_number ? entry.number : 0, entry.recomputed + 1);
  }

  /// Keeps a candidate that fits if it is among the fastest.
  void keep(Candidate made) {
    std::vector<Candidate>& best = advice_.fits;
    const auto place = std::upper_bound(best.begin(), best.end(), made,
                                        [](const Candidate& a, const Candidate& b) {
                                          return a.step.step_seconds < b.step.step_seconds;
                                        });
    best.insert(place, std::move(made));
    if (best.size() > options_.best) best.pop_back();
  }

  /// Returns a candidate; none if the configuration cannot run like this. `problem_` then tells
  /// why.
  std::optional<Candidate> candidate(const Way& way, Size microbatches,
                                     const Recomputation& recomputation) {
    Candidate made{way.config, way.mesh};
    made.config.training.microbatches = microbatches;
    made.config.training.activation_checkpointing = recomputation;
    ++advice_.planned;
    try {
      validate(made.config, ranks_);
      const Plan plan = make_plan(plan_input(made.config, way.mesh, machine_.traits()));
      const RankKinds kinds = rank_kinds(plan);
      for (const Size rank : kinds.first)
        made.memory_bytes = std::max(made.memory_bytes, plan.memory(rank).total());
      made.sent_bytes = step_bytes(plan);
      if (made.memory_bytes <= machine_.memory_bytes)
        made.step = simulate(plan, cost_on(machine_, plan), kinds, machine_.software);
      return made;
    } catch (const ConfigError& error) {
      problem_ = error.what();
      return std::nullopt;
    }
  }

  const Config& config_;
  Size ranks_;
  const Machine& machine_;
  const SearchOptions& options_;
  StepBounds bounds_;
  std::vector<ContextAttention> attention_;
  /// The recomputations to try. Each recomputes more than the one before and needs less memory.
  std::vector<Recomputation> recomputations_{{}, {.what = Recomputed::cheap}, {.units = 1}};
  std::vector<Way> ways_;
  std::set<Entry> queue_;
  Advice advice_;
  bool has_fit_ = false;
  std::string problem_;
};

void join(Advice& all, Advice more, std::size_t best) {
  std::ranges::move(more.fits, std::back_inserter(all.fits));
  std::ranges::stable_sort(all.fits, {}, [](const Candidate& c) { return c.step.step_seconds; });
  all.fits.resize(std::min(best, all.fits.size()));
  std::ranges::move(more.too_large, std::back_inserter(all.too_large));
  std::ranges::stable_sort(all.too_large, {}, &Candidate::memory_bytes);
  all.planned += more.planned;
  all.candidates += more.candidates;
}

}  // namespace

Advice advise(const Config& config, Size ranks, const Machine& machine,
              const SearchOptions& options) {
  Advice all = Search(config, ranks, machine, options).run();
  for (const Machine& other : machine.others) {
    const Size threads = ranks * machine.threads;
    if (threads % other.threads != 0 || threads / other.threads > other.ranks()) continue;
    Config own = config;
    own.training.distributed.threads = other.threads;
    try {
      join(all, Search(own, threads / other.threads, other, options).run(), options.best);
    } catch (const ConfigError&) {
      // No mesh of so many ranks can run the configuration.
    }
  }
  return all;
}

std::string why_slower(const SimulatedStep& slower, const SimulatedStep& faster) {
  std::map<std::string, double> more;
  for (const auto& [name, seconds] : slower.parts()) more[name] += seconds;
  for (const auto& [name, seconds] : faster.parts()) more[name] -= seconds;
  const auto largest = std::max_element(
      more.begin(), more.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest->second <= 0) return "";
  return fmt::format("{} more in {}", human_seconds(largest->second), largest->first);
}

}  // namespace tessera
