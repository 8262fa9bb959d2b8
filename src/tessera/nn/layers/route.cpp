// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>
#include <utility>

#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/layers/expert_slots.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/layers/shared_rows.hpp>

namespace tessera {
namespace {

/// The routing of a microbatch in scratch memory. A score is negative if the position does not
/// choose the expert, and never 0, however small.
template <class Math>
struct RoutingNumbers {
  Size experts, positions;
  Math *score, *log_sum;             ///< (rows, experts), (rows)
  Math *chosen, *dropped, *entropy;  ///< (samples, experts)
  Math* gate_sum;                    ///< (rows), of the chosen scores; null: gates are scores

  /// Returns the divisor of a row's gates.
  KOKKOS_INLINE_FUNCTION Math divisor_of(Size row) const {
    return gate_sum ? gate_sum[row] : Math(1);
  }
};

/// Returns the softmax of a logit, which may be its score.
template <class Math>
KOKKOS_INLINE_FUNCTION Math probability_of(Router router, Math score, Math logit, Math log_sum) {
  using std::fabs;
  return router == Router::softmax ? fabs(score) : detail::exp_of_nonpositive(logit - log_sum);
}

Size route_scratch(const LayerSpec& layer, Size samples) {
  const Size of_row = layer.in() + (layer.get<Routing>().renormalize ? 2 : 1);
  return samples * (layer.positions() * of_row + 3 * layer.in());
}

/// The exponential functions of the softmax. Beside sigmoids it is computed again. It has two sums,
/// and each choice has two.
LayerFunctions route_functions(const LayerSpec& layer) {
  const auto& routing = layer.get<Routing>();
  const auto elements = static_cast<double>(layer.positions() * layer.in());
  const auto sums = static_cast<double>(layer.positions() * (2 + 2 * routing.top_k));
  const bool has_sigmoids = routing.router == Router::sigmoid;
  return {.exponentials = {(has_sigmoids ? 3 : 1) * elements, (has_sigmoids ? 5 : 1) * elements},
          .row_sums = {sums, sums}};
}

/// Scores of each position, and its choices: the largest logits or, with a bias, the largest sums
/// of score and bias, at a tie those of lower number. Scores alone cannot choose, because those of
/// small logits are equal. A position with a logit that is not a number chooses nothing.
template <class T>
void choose_experts(const RoutingNumbers<StateOf<T>>& numbers, Size rows, const T* logits,
                    const T* bias, const Routing& routing) {
  using Math = StateOf<T>;
  const Size top_k = routing.top_k;
  const bool has_sigmoids = routing.router == Router::sigmoid;
  for_rows(
      "tessera::route_choose"_label, rows, numbers.experts, KOKKOS_LAMBDA(const Row& row) {
        using std::fabs;
        using std::log;
        const Size experts = numbers.experts;
        const T* const x = logits + row.number * experts;
        Math* const p = numbers.score + row.number * experts;
        Math* const log_sum = numbers.log_sum + row.number;
        const Math largest =
            row.max<Math>(experts, [=](Size e) { return static_cast<Math>(x[e]); });
        row.for_each(experts,
                     [=](Size e) { p[e] = detail::exp_of_nonpositive(Math(x[e]) - largest); });
        const Math sum = row.sum<Math>(experts, [=](Size e) { return p[e]; });
        row.once([=] { *log_sum = largest + log(sum); });
        constexpr Math smallest = Kokkos::Experimental::norm_min_v<Math>;
        row.for_each(experts, [=](Size e) {
          const Math score = has_sigmoids ? detail::sigmoid_of(Math(x[e])) : p[e] / sum;
          p[e] = score < smallest ? smallest : score;
        });

        // The least that is chosen, and how many of those that equal it are too many.
        constexpr Math lowest = Kokkos::Experimental::finite_min_v<Math>;
        const auto merit = [=](Size e) {
          const Math value = bias ? fabs(p[e]) + Math(bias[e]) : Math(x[e]);
          return value < lowest ? lowest : value;
        };
        Math least = Kokkos::Experimental::infinity_v<Math>;
        Size excess = sum > 0 ? -top_k : 0;  // the sum is not a number if a logit is not
        while (excess < 0) {
          const Math next =
              row.max<Math>(experts, [=](Size e) { return merit(e) < least ? merit(e) : lowest; });
          least = next;
          excess += static_cast<Size>(
              row.sum<Math>(experts, [=](Size e) { return Math(merit(e) == next ? 1 : 0); }));
        }
        row.for_each(experts, [=](Size e) { p[e] = merit(e) >= least ? p[e] : -p[e]; });
        if (excess > 0) {
          row.wait();
          row.once([=] {
            for (Size e = experts - 1, left = excess; left > 0; --e)
              if (merit(e) == least) p[e] = -p[e], --left;
          });
        }
        if (numbers.gate_sum == nullptr) return;
        row.wait();
        const Math chosen =
            row.sum<Math>(experts, [=](Size e) { return p[e] > 0 ? p[e] : Math(0); });
        row.once([=] { numbers.gate_sum[row.number] = chosen; });
      });
}

/// Lets experts take the first positions of a sample that choose them. `gates` are null in
/// backward, which counts the choices only.
template <class T, bool makes_gates>
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
      const Math log_sum = numbers.log_sum[row], divisor = numbers.divisor_of(row);
      some.for_each([&](Size e) {
        const Size at = first + e;
        const Math score = numbers.score[at], logit = logits[at],
                   p = probability_of(routing.router, score, logit, log_sum);
        const bool takes = score > 0 && taken[e] < capacity;
        if constexpr (makes_gates) {
          const Math gate = fabs(score) / divisor;
          const Math not_zero = gate < smallest_gate ? smallest_gate : gate;
          gates[at] = static_cast<T>(takes ? not_zero : Math(0));
        }
        chosen[e] += score > 0 ? 1 : 0;
        taken[e] += takes ? 1 : 0;
        sum[e] += p;
        entropy[e] += p * (static_cast<double>(log_sum) - logit);
      });
    });
    double loss = 0;
    for (Size e = 0; e < some.count; ++e) {
      const Size at = some.sample * experts + some.first + e;
      numbers.chosen[at] = static_cast<Math>(chosen[e]);
      numbers.dropped[at] = static_cast<Math>(chosen[e] - taken[e]);
      numbers.entropy[at] = static_cast<Math>(entropy[e]);
      const double chosen_fraction =
          static_cast<double>(chosen[e]) / static_cast<double>(routing.top_k * numbers.positions);
      loss += routing.balance_weight * static_cast<double>(experts) * chosen_fraction * sum[e];
    }
    return loss;
  }
};

/// Makes the numbers in the scratch memory of the call.
template <class T>
RoutingNumbers<StateOf<T>> route_numbers(const LayerCall<T>& call) {
  const LayerSpec& layer = call.layer;
  const Size experts = layer.in(), positions = layer.positions(), rows = call.samples * positions,
             counts = call.samples * experts;
  const Routing& routing = layer.get<Routing>();
  auto* const score = call.scratch.data();
  auto* const log_sum = score + rows * experts;
  auto* const chosen = log_sum + rows;
  auto* const gate_sum = routing.renormalize ? chosen + 3 * counts : nullptr;
  const RoutingNumbers<StateOf<T>> numbers{
      experts, positions, score, log_sum, chosen, chosen + counts, chosen + 2 * counts, gate_sum};
  choose_experts<T>(numbers, rows, call.inputs[0].data(), data_or_null(call.parameters[0]),
                    routing);
  return numbers;
}

/// Adds the counts of all samples.
template <class Math>
void add_counts(const RoutingNumbers<Math>& numbers, Size samples, double* sums) {
  const Size experts = numbers.experts;
  for_each(
      "tessera::route_sum_counts"_label, experts,
      KOKKOS_LAMBDA(Size e) {
        for (Size i = e; i < samples * experts; i += experts) {
          sums[e] += numbers.chosen[i];
          sums[experts + e] += numbers.dropped[i];
          sums[2 * experts + e] += numbers.entropy[i];
        }
      },
      samples * experts);
}

/// Writes the z-loss of all rows, in the order of positions.
template <class Math>
void write_z_loss(const RoutingNumbers<Math>& numbers, const detail::SharedRows& rows,
                  double weight, double* loss) {
  const Math* const log_sum = numbers.log_sum;
  sum_each(
      "tessera::route_z_loss"_label, rows.samples,
      KOKKOS_LAMBDA(Size sample, double& sum) {
        rows.for_each_position(sample, [&](Size row) {
          const double each = log_sum[row];
          sum += weight * (each * each);
        });
      },
      Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(loss), rows.samples * numbers.positions);
}

template <class T>
void route_forward(const LayerCall<T>& call) {
  const LayerSpec& layer = call.layer;
  const auto numbers = route_numbers(call);
  const Size parts = call.samples * detail::SomeExperts::parts(numbers.experts);
  const Size work = call.samples * numbers.experts * numbers.positions;
  const Admit<T, true> admit{numbers,
                             call.inputs[0].data(),
                             call.output.data(),
                             layer.get<Routing>(),
                             {layer, numbers.positions, call.samples}};
  if (call.batch.loss == nullptr) {
    for_each(
        "tessera::route_admit"_label, parts, KOKKOS_LAMBDA(Size i) { admit(i); }, work);
  } else {
    sum_each(
        "tessera::route_admit"_label, parts,
        KOKKOS_LAMBDA(Size i, double& sum) { sum += admit(i); },
        Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(call.batch.loss), work);
    write_z_loss(numbers, admit.rows, layer.get<Routing>().z_weight, call.batch.loss + 1);
  }
  if (call.batch.routing != nullptr) add_counts(numbers, call.samples, call.batch.routing);
}

/// The gradient of the bias: experts times the choices of an expert, less the choices of all. If
/// ranks of `context` share positions, each has routed them all, and the first one counts them.
template <class T>
void bias_gradient(const LayerCall<T>& call, const RoutingNumbers<StateOf<T>>& numbers) {
  using Math = StateOf<T>;
  const Size experts = numbers.experts, samples = call.layer.share.part == 0 ? call.samples : 0,
             of_sample = call.layer.template get<Routing>().top_k * numbers.positions;
  const Math* const chosen = numbers.chosen;
  Math* const gradient = call.parameter_gradients[0].data();
  const bool add = call.add_parameter_gradients;
  for_each(
      "tessera::route_bias_gradient"_label, experts,
      KOKKOS_LAMBDA(Size e) {
        Math sum = add ? gradient[e] : Math(0);
        for (Size i = e; i < samples * experts; i += experts)
          sum += static_cast<Math>(experts) * chosen[i] - static_cast<Math>(of_sample);
        gradient[e] = sum;
      },
      samples * experts);
}

/// dlogit = p (d - sum p d + 2 z_weight log_sum), where d is the gradient of the probability, and
/// s (1 - s) times the gradient of a sigmoid s. The gradient of the output may be that of the
/// input.
template <class T>
void route_backward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const LayerSpec& layer = call.layer;
  const Routing& routing = layer.get<Routing>();
  const auto numbers = route_numbers(call);
  const Size experts = numbers.experts, rows = call.samples * numbers.positions;
  const detail::SharedRows shared(layer, numbers.positions, call.samples);
  const Admit<T, false> count{numbers, call.inputs[0].data(), nullptr, routing, shared};
  for_each(
      "tessera::route_count"_label, call.samples * detail::SomeExperts::parts(experts),
      KOKKOS_LAMBDA(Size i) { count(i); }, rows * experts);
  const double per_choice = routing.balance_weight * static_cast<double>(experts) /
                            static_cast<double>(routing.top_k * numbers.positions);
  const Math scale = call.batch.gradient_scale, balance = scale * static_cast<Math>(per_choice),
             z = scale * static_cast<Math>(2 * routing.z_weight);
  if (routing.bias_rate > 0) bias_gradient(call, numbers);
  if (!call.wants_input_gradient(0)) return;
  const Router router = routing.router;
  const T *const logits = call.inputs[0].data(), *const gates = call.output.data(),
                 *const dgates = call.output_gradient.data();
  T* const dlogits = call.input_gradients[0].data();
  for_each(
      "tessera::route_backward"_label, rows,
      KOKKOS_LAMBDA(Size row) {
        using std::fabs;
        const Size first = row * experts;
        const Math* const score = numbers.score + first;
        const Math* const chosen = numbers.chosen + shared.sample_of(row) * experts;
        const Math log_sum = numbers.log_sum[row], divisor = numbers.divisor_of(row);
        const auto gate_slope = [=](Size e) {
          const bool takes = static_cast<Math>(gates[first + e]) != 0;
          return takes ? Math(dgates[first + e]) : Math(0);
        };
        Math of_divisor = 0;  // a larger score makes all gates of the position smaller
        if (numbers.gate_sum != nullptr)
          for (Size e = 0; e < experts; ++e) of_divisor += gate_slope(e) * fabs(score[e]) / divisor;
        const auto score_slope = [=](Size e) {
          return score[e] > 0 ? (gate_slope(e) - of_divisor) / divisor : Math(0);
        };
        const auto p = [=](Size e) {
          return probability_of(router, score[e], Math(logits[first + e]), log_sum);
        };
        const auto slope = [=](Size e) {
          const Math d = balance * chosen[e];
          return router == Router::softmax ? d + score_slope(e) : d;
        };
        Math rest = -z * log_sum;
        for (Size e = 0; e < experts; ++e) rest += p(e) * slope(e);
        for (Size e = 0; e < experts; ++e) {
          const Math s = fabs(score[e]), of_softmax = p(e) * (slope(e) - rest);
          dlogits[first + e] =
              router == Router::softmax ? of_softmax : of_softmax + s * (1 - s) * score_slope(e);
        }
      },
      rows * experts);
}

constexpr LossTerm route_terms[] = {{"balance_loss", false}, {"router_z_loss", false}};

constexpr LayerKind route_kind_of(const Operand& bias) {
  return {
      .name = "route",
      .expression = {.inputs = {{"sp,e"}}, .parameters = {bias}, .output = "sp,e", .whole = "pe"},
      .reads_batch = true,
      .loss_terms = route_terms,
      .functions = route_functions,
      .scratch = route_scratch,
      .reads_inputs = always,
      .reads_output = always,
      .gradient_in_place = true,
      .forward = [](const auto& call) { route_forward(call); },
      .backward = [](const auto& call) { route_backward(call); }};
}

constexpr LayerKind route_kind = route_kind_of({}), biased_route_kind = route_kind_of({"e"});

}  // namespace

LayerSpec route(std::string name, std::string unit, Size logits, const Routing& routing) {
  const bool biased = routing.bias_rate > 0;
  LayerSpec layer{biased ? &biased_route_kind : &route_kind,
                  std::move(name),
                  std::move(unit),
                  {logits},
                  {{'e', routing.experts}}};
  layer.settings = routing;
  if (biased)
    layer.parameters = {{"bias", {routing.experts}, {""}, Initial::zeros, 0, routing.bias_rate}};
  return layer;
}

}  // namespace tessera
