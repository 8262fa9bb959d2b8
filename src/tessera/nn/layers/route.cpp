// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/layers/expert_slots.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/layers/shared_rows.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string route_choose_label = "tessera::route_choose";
const std::string route_admit_label = "tessera::route_admit";
const std::string route_z_loss_label = "tessera::route_z_loss";
const std::string route_count_label = "tessera::route_count";
const std::string route_sum_label = "tessera::route_sum_counts";
const std::string route_backward_label = "tessera::route_backward";

/// The routing of a microbatch in scratch memory. A probability is negative if the position does
/// not choose the expert, and never 0, however small.
template <class Math>
struct RoutingNumbers {
  Size experts, positions;
  Math *probability, *log_sum;       ///< (rows, experts), (rows)
  Math *chosen, *dropped, *entropy;  ///< (samples, experts)
};

const Routing& route_settings(const LayerSpec& layer) { return layer.get<Routing>(); }

Size route_scratch(const LayerSpec& layer, Size samples) {
  return samples * (layer.positions() * (layer.in() + 1) + 3 * layer.in());
}

/// The exponential functions of the softmax. It has two sums, and each choice has two.
PassCount route_functions(const LayerSpec& layer, Size samples) {
  const auto rows = static_cast<double>(samples * layer.positions());
  const auto sums = static_cast<double>(2 + 2 * route_settings(layer).top_k);
  const double each = rows * (static_cast<double>(layer.in()) + functions_per_sum * sums);
  return {each, each};
}

/// Softmax of the logits of a position, and its choices: the largest logits, at a tie those of
/// lower number. Probabilities cannot choose, because those of small logits are equal. A position
/// with a logit that is not a number chooses nothing.
template <class T>
struct Choose {
  using Math = StateOf<T>;
  const T* logits;
  RoutingNumbers<Math> numbers;
  Size top_k;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    using std::log;
    const Size row = team.league_rank(), experts = numbers.experts;
    const T* const x = logits + row * experts;
    Math* const p = numbers.probability + row * experts;
    Math* const log_sum = numbers.log_sum + row;
    const auto largest_of = [&](const auto& f) {
      return detail::reduce_lanes<Kokkos::Max, Math>(team, experts, f);
    };
    const auto sum_of = [&](const auto& f) {
      return detail::reduce_lanes<Kokkos::Sum, Math>(team, experts, f);
    };
    const auto for_each_expert = [&](const auto& f) {
      detail::for_each_lane(Kokkos::TeamVectorRange(team, experts), experts, f);
    };
    const Math largest = largest_of([=](Size e) { return static_cast<Math>(x[e]); });
    for_each_expert([=](Size e) { p[e] = detail::exp_of_nonpositive(Math(x[e]) - largest); });
    const Math sum = sum_of([=](Size e) { return p[e]; });
    Kokkos::single(Kokkos::PerTeam(team), [=] { *log_sum = largest + log(sum); });
    constexpr Math smallest = Kokkos::Experimental::norm_min_v<Math>;
    for_each_expert([=](Size e) {
      const Math share = p[e] / sum;
      p[e] = share < smallest ? smallest : share;
    });

    // The least chosen logit, and how many of those that equal it are too many.
    constexpr Math lowest = Kokkos::Experimental::finite_min_v<Math>;
    const auto logit = [=](Size e) { return Math(x[e]) < lowest ? lowest : Math(x[e]); };
    Math least = Kokkos::Experimental::infinity_v<Math>;
    Size excess = sum > 0 ? -top_k : 0;  // the sum is not a number if a logit is not
    while (excess < 0) {
      const Math next = largest_of([=](Size e) { return logit(e) < least ? logit(e) : lowest; });
      least = next;
      excess += static_cast<Size>(sum_of([=](Size e) { return Math(logit(e) == next ? 1 : 0); }));
    }
    for_each_expert([=](Size e) { p[e] = logit(e) >= least ? p[e] : -p[e]; });
    if (excess <= 0) return;
    team.team_barrier();
    Kokkos::single(Kokkos::PerTeam(team), [=] {
      for (Size e = experts - 1, left = excess; left > 0; --e)
        if (logit(e) == least) p[e] = -p[e], --left;
    });
  }
};

/// Lets experts take the first positions of a sample that choose them.
template <class T>
struct Admit {
  using Math = StateOf<T>;
  /// The gate of a chosen expert is never 0, which would mean that the expert does not take the
  /// position: a probability below the numbers of T becomes the smallest of them.
  static constexpr Math smallest_gate =
      std::is_same_v<T, Float16> ? Math(0x1p-24) : Kokkos::Experimental::norm_min_v<Math>;
  RoutingNumbers<Math> numbers;
  const T* logits;
  T* gates;
  Routing routing;
  detail::SharedRows rows;

  /// Returns the balance loss of some experts and a sample.
  KOKKOS_INLINE_FUNCTION double operator()(Size i) const {
    using std::fabs;
    const Size experts = numbers.experts;
    const detail::SomeExperts some(i, experts);
    std::int32_t chosen[some.most] = {}, taken[some.most] = {};
    double sum[some.most] = {}, entropy[some.most] = {};
    const auto capacity = static_cast<std::int32_t>(routing.capacity);
    rows.for_each_position(some.sample, [&](Size row) {
      const Size first = row * experts + some.first;
      // The logarithm of the softmax is the logit less that of the sum.
      const double log_sum = numbers.log_sum[row];
      some.for_each([&](Size e) {
        const Size at = first + e;
        const Math p = numbers.probability[at], size = fabs(p);
        const bool takes = p > 0 && taken[e] < capacity;
        const Math gate = size < smallest_gate ? smallest_gate : size;
        gates[at] = static_cast<T>(takes ? gate : Math(0));
        chosen[e] += p > 0 ? 1 : 0;
        taken[e] += takes ? 1 : 0;
        sum[e] += size;
        entropy[e] += size * (log_sum - Math(logits[at]));
      });
    });
    double loss = 0;
    for (Size e = 0; e < some.count; ++e) {
      const Size at = some.sample * experts + some.first + e;
      numbers.chosen[at] = static_cast<Math>(chosen[e]);
      numbers.dropped[at] = static_cast<Math>(chosen[e] - taken[e]);
      numbers.entropy[at] = static_cast<Math>(entropy[e]);
      const double share =
          static_cast<double>(chosen[e]) / static_cast<double>(routing.top_k * numbers.positions);
      loss += routing.balance_weight * static_cast<double>(experts) * share * sum[e];
    }
    return loss;
  }
};

/// Counts the positions of a sample that choose each expert.
template <class Math>
struct CountChosen {
  RoutingNumbers<Math> numbers;
  detail::SharedRows rows;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    const Size experts = numbers.experts;
    const detail::SomeExperts some(i, experts);
    Math count[some.most] = {};
    rows.for_each_position(some.sample, [&](Size row) {
      const Math* const p = numbers.probability + row * experts + some.first;
      some.for_each([&](Size e) { count[e] += Math(p[e] > 0 ? 1 : 0); });
    });
    Math* const chosen = numbers.chosen + some.sample * experts + some.first;
    some.for_each([&](Size e) { chosen[e] = count[e]; });
  }
};

/// dlogit = p (d - sum p d + 2 z_weight log_sum), where d is the gradient of the probability.
template <class T>
struct LogitGradients {
  using Math = StateOf<T>;
  RoutingNumbers<Math> numbers;
  const T *gates, *dgates;
  T* dlogits;
  Math balance, z;
  detail::SharedRows rows;

  KOKKOS_INLINE_FUNCTION Math slope(Size row, const Math* chosen, Size expert) const {
    const Size at = row * numbers.experts + expert;
    const Math d = balance * chosen[expert];
    return static_cast<Math>(gates[at]) != 0 ? d + dgates[at] : d;
  }
  KOKKOS_INLINE_FUNCTION void operator()(Size row) const {
    using std::fabs;
    const Size experts = numbers.experts;
    const Math* const p = numbers.probability + row * experts;
    const Math* const chosen = numbers.chosen + rows.sample_of(row) * experts;
    Math rest = -z * numbers.log_sum[row];
    for (Size e = 0; e < experts; ++e) rest += fabs(p[e]) * slope(row, chosen, e);
    for (Size e = 0; e < experts; ++e)
      dlogits[row * experts + e] = fabs(p[e]) * (slope(row, chosen, e) - rest);
  }
};

template <class T>
RoutingNumbers<StateOf<T>> choose(const LayerCall<T>& call) {
  const Size experts = call.layer.in(), positions = call.layer.positions(),
             rows = call.samples * positions;
  auto* const p = call.scratch.data();
  auto* const log_sum = p + rows * experts;
  auto* const chosen = log_sum + rows;
  const Size counts = call.samples * experts;
  const RoutingNumbers<StateOf<T>> numbers{experts,         positions,          p, log_sum, chosen,
                                           chosen + counts, chosen + 2 * counts};
  for_each_row(route_choose_label, rows, experts,
               Choose<T>{call.inputs[0].data(), numbers, route_settings(call.layer).top_k});
  return numbers;
}

template <class T>
detail::SharedRows shared_rows_of(const LayerCall<T>& call) {
  return {call.layer, call.layer.positions(), call.samples};
}

/// Adds the counts of all samples.
template <class Math>
void add_counts(const RoutingNumbers<Math>& numbers, Size samples, double* sums) {
  const Size experts = numbers.experts;
  for_each(
      route_sum_label, experts,
      KOKKOS_LAMBDA(Size e) {
        for (Size i = e; i < samples * experts; i += experts) {
          sums[e] += numbers.chosen[i];
          sums[experts + e] += numbers.dropped[i];
          sums[2 * experts + e] += numbers.entropy[i];
        }
      },
      samples * experts);
}

/// Writes the z-loss of all rows.
template <class Math>
void write_z_loss(const RoutingNumbers<Math>& numbers, Size rows, double weight, double* loss) {
  const Math* const log_sum = numbers.log_sum;
  sum_each(
      route_z_loss_label, rows,
      KOKKOS_LAMBDA(Size row, double& sum) {
        const double each = log_sum[row];
        sum += weight * (each * each);
      },
      Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(loss));
}

template <class T>
void route_forward(const LayerCall<T>& call) {
  const auto numbers = choose(call);
  const Size parts = call.samples * detail::SomeExperts::parts(numbers.experts);
  const Size work = call.samples * numbers.experts * numbers.positions;
  const Admit<T> admit{numbers, call.inputs[0].data(), call.output.data(),
                       route_settings(call.layer), shared_rows_of(call)};
  if (call.batch.loss == nullptr) {
    for_each(
        route_admit_label, parts, KOKKOS_LAMBDA(Size i) { admit(i); }, work);
  } else {
    sum_each(
        route_admit_label, parts, KOKKOS_LAMBDA(Size i, double& sum) { sum += admit(i); },
        Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(call.batch.loss), work);
    write_z_loss(numbers, call.samples * numbers.positions, route_settings(call.layer).z_weight,
                 call.batch.loss + 1);
  }
  if (call.batch.routing != nullptr) add_counts(numbers, call.samples, call.batch.routing);
}

/// The gradient of the output may be that of the input.
template <class T>
void route_backward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Routing& routing = route_settings(call.layer);
  const auto numbers = choose(call);
  const Size experts = numbers.experts, rows = call.samples * numbers.positions;
  for_each(route_count_label, call.samples * detail::SomeExperts::parts(experts),
           CountChosen<Math>{numbers, shared_rows_of(call)}, rows * experts);
  const Math scale = call.batch.gradient_scale;
  const double per_choice = routing.balance_weight * static_cast<double>(experts) /
                            static_cast<double>(routing.top_k * numbers.positions);
  for_each(route_backward_label, rows,
           LogitGradients<T>{numbers, call.output.data(), call.output_gradient.data(),
                             call.input_gradients[0].data(), scale * static_cast<Math>(per_choice),
                             scale * static_cast<Math>(2 * routing.z_weight), shared_rows_of(call)},
           rows * experts);
}

constexpr LayerRow route_row{.name = "route",
                             .expression = {.inputs = {{"sp,e"}}, .output = "sp,e", .whole = "pe"},
                             .reads_batch = true,
                             .adds_loss = true,
                             .functions = route_functions,
                             .scratch = route_scratch,
                             .reads_inputs = always,
                             .reads_output = always,
                             .gradient_in_place = true,
                             .forward = [](const auto& call) { route_forward(call); },
                             .backward = [](const auto& call) { route_backward(call); }};

}  // namespace

LayerSpec route(std::string name, std::string unit, Size logits, const Routing& routing) {
  LayerSpec layer{&route_row, std::move(name), std::move(unit), {logits}, {{'e', routing.experts}}};
  layer.settings = routing;
  return layer;
}

}  // namespace tessera
