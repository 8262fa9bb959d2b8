// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>
#include <utility>

#include <tessera/nn/exponential.hpp>
#include <tessera/nn/layers/expert_slots.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/layers/shared_rows.hpp>

namespace tessera {
namespace {

/// The routing of a microbatch in scratch memory. A probability is negative if the position does
/// not choose the expert, and never 0, however small.
template <class Math>
struct RoutingNumbers {
  Size experts, positions;
  Math *probability, *log_sum;       ///< (rows, experts), (rows)
  Math *chosen, *dropped, *entropy;  ///< (samples, experts)
};

Size route_scratch(const LayerSpec& layer, Size samples) {
  return samples * (layer.positions() * (layer.in() + 1) + 3 * layer.in());
}

/// The exponential functions of the softmax. It has two sums, and each choice has two.
LayerFunctions route_functions(const LayerSpec& layer) {
  const auto elements = static_cast<double>(layer.positions() * layer.in());
  const auto sums = static_cast<double>(layer.positions() * (2 + 2 * layer.get<Routing>().top_k));
  return {.exponentials = {elements, elements}, .row_sums = {sums, sums}};
}

/// Softmax of the logits of each position, and its choices: the largest logits, at a tie those of
/// lower number. Probabilities cannot choose, because those of small logits are equal. A position
/// with a logit that is not a number chooses nothing.
template <class T>
void choose_experts(const RoutingNumbers<StateOf<T>>& numbers, Size rows, const T* logits,
                    Size top_k) {
  using Math = StateOf<T>;
  for_rows(
      "tessera::route_choose"_label, rows, numbers.experts, KOKKOS_LAMBDA(const Row& row) {
        using std::log;
        const Size experts = numbers.experts;
        const T* const x = logits + row.number * experts;
        Math* const p = numbers.probability + row.number * experts;
        Math* const log_sum = numbers.log_sum + row.number;
        const Math largest =
            row.max<Math>(experts, [=](Size e) { return static_cast<Math>(x[e]); });
        row.for_each(experts,
                     [=](Size e) { p[e] = detail::exp_of_nonpositive(Math(x[e]) - largest); });
        const Math sum = row.sum<Math>(experts, [=](Size e) { return p[e]; });
        row.once([=] { *log_sum = largest + log(sum); });
        constexpr Math smallest = Kokkos::Experimental::norm_min_v<Math>;
        row.for_each(experts, [=](Size e) {
          const Math probability = p[e] / sum;
          p[e] = probability < smallest ? smallest : probability;
        });

        // The least chosen logit, and how many of those that equal it are too many.
        constexpr Math lowest = Kokkos::Experimental::finite_min_v<Math>;
        const auto logit = [=](Size e) { return Math(x[e]) < lowest ? lowest : Math(x[e]); };
        Math least = Kokkos::Experimental::infinity_v<Math>;
        Size excess = sum > 0 ? -top_k : 0;  // the sum is not a number if a logit is not
        while (excess < 0) {
          const Math next =
              row.max<Math>(experts, [=](Size e) { return logit(e) < least ? logit(e) : lowest; });
          least = next;
          excess += static_cast<Size>(
              row.sum<Math>(experts, [=](Size e) { return Math(logit(e) == next ? 1 : 0); }));
        }
        row.for_each(experts, [=](Size e) { p[e] = logit(e) >= least ? p[e] : -p[e]; });
        if (excess <= 0) return;
        row.wait();
        row.once([=] {
          for (Size e = experts - 1, left = excess; left > 0; --e)
            if (logit(e) == least) p[e] = -p[e], --left;
        });
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
      const double log_sum = numbers.log_sum[row];
      some.for_each([&](Size e) {
        const Size at = first + e;
        const Math p = numbers.probability[at], size = fabs(p);
        const bool takes = p > 0 && taken[e] < capacity;
        if constexpr (makes_gates) {
          const Math gate = size < smallest_gate ? smallest_gate : size;
          gates[at] = static_cast<T>(takes ? gate : Math(0));
        }
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
  auto* const p = call.scratch.data();
  auto* const log_sum = p + rows * experts;
  auto* const chosen = log_sum + rows;
  const RoutingNumbers<StateOf<T>> numbers{experts,         positions,          p, log_sum, chosen,
                                           chosen + counts, chosen + 2 * counts};
  choose_experts<T>(numbers, rows, call.inputs[0].data(), layer.get<Routing>().top_k);
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

/// Writes the z-loss of all rows.
template <class Math>
void write_z_loss(const RoutingNumbers<Math>& numbers, Size rows, double weight, double* loss) {
  const Math* const log_sum = numbers.log_sum;
  sum_each(
      "tessera::route_z_loss"_label, rows,
      KOKKOS_LAMBDA(Size row, double& sum) {
        const double each = log_sum[row];
        sum += weight * (each * each);
      },
      Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(loss));
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
    write_z_loss(numbers, call.samples * numbers.positions, layer.get<Routing>().z_weight,
                 call.batch.loss + 1);
  }
  if (call.batch.routing != nullptr) add_counts(numbers, call.samples, call.batch.routing);
}

/// dlogit = p (d - sum p d + 2 z_weight log_sum), where d is the gradient of the probability. The
/// gradient of the output may be that of the input.
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
  const T *const gates = call.output.data(), *const dgates = call.output_gradient.data();
  T* const dlogits = call.input_gradients[0].data();
  for_each(
      "tessera::route_backward"_label, rows,
      KOKKOS_LAMBDA(Size row) {
        using std::fabs;
        const Size first = row * experts;
        const Math* const p = numbers.probability + first;
        const Math* const chosen = numbers.chosen + shared.sample_of(row) * experts;
        const auto slope = [=](Size e) {
          const Math d = balance * chosen[e];
          return static_cast<Math>(gates[first + e]) != 0 ? d + dgates[first + e] : d;
        };
        Math rest = -z * numbers.log_sum[row];
        for (Size e = 0; e < experts; ++e) rest += fabs(p[e]) * slope(e);
        for (Size e = 0; e < experts; ++e) dlogits[first + e] = fabs(p[e]) * (slope(e) - rest);
      },
      rows * experts);
}

constexpr LossTerm route_terms[] = {{"balance_loss", false}, {"router_z_loss", false}};

constexpr LayerKind route_kind{
    .name = "route",
    .expression = {.inputs = {{"sp,e"}}, .output = "sp,e", .whole = "pe"},
    .reads_batch = true,
    .loss_terms = route_terms,
    .functions = route_functions,
    .scratch = route_scratch,
    .reads_inputs = always,
    .reads_output = always,
    .gradient_in_place = true,
    .forward = [](const auto& call) { route_forward(call); },
    .backward = [](const auto& call) { route_backward(call); }};

}  // namespace

LayerSpec route(std::string name, std::string unit, Size logits, const Routing& routing) {
  LayerSpec layer{
      &route_kind, std::move(name), std::move(unit), {logits}, {{'e', routing.experts}}};
  layer.settings = routing;
  return layer;
}

}  // namespace tessera
