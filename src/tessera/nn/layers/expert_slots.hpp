// SPDX-License-Identifier: Apache-2.0
// Experts in kernels, and their slots, which dispatch() fills and combine() reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/layers/shared_rows.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera::detail {

/// The slots of a rank's microbatch: a matrix (samples capacity, own width) with the rows of a
/// sample's slots below each other and the columns of its own experts side by side. Ranks of
/// `context` share slots as they share positions (SharedRows); in no fixed order, in one run each.
struct ExpertSlots {
  const std::int32_t* numbers;  ///< (rows, experts); negative if the expert does not take the row
  Size experts, first, own;     ///< all experts; the rank's own ones
  SharedRows rows;              ///< of the gates
  Size capacity, width;
  Size blocks;  ///< of the experts (Split::blocks), whose sums are added in a tree

  /// The experts that take a position, and the elements at which their slots for it begin.
  struct Places {
    Size count = 0;
    Size expert[max_choices], begin[max_choices];
    Size block[max_choices];  ///< of experts, counted from the first of all

    /// Sums term(i) over the slots: those of a block in their order, then blocks in pairs
    /// (pair_tree.hpp). No slot is -0.
    template <class Math, class F>
    KOKKOS_INLINE_FUNCTION Math sum(const F& term) const {
      Math sums[max_choices] = {Math(-0.0)};
      if (count == 0 || block[0] == block[count - 1]) {
        for (Size i = 0; i < count; ++i) sums[0] += term(i);
        return sums[0];
      }
      Size of[max_choices], left = count;
      for (Size i = 0; i < count; ++i) sums[i] = term(i), of[i] = block[i];
      for (int level = 0; left > 1; ++level) {
        Size n = 0;
        for (Size i = 1; i < left; ++i)
          if (of[i] >> level == of[n] >> level)
            sums[n] += sums[i];
          else
            sums[++n] = sums[i], of[n] = of[i];
        left = n + 1;
      }
      return sums[0];
    }
  };
  /// `row`: of the rank's own ones.
  KOKKOS_INLINE_FUNCTION Places of(Size row) const {
    const Size sample = rows.sample_of_own(row), gate_row = rows.of_own(row);
    const std::int32_t* const taken = numbers + gate_row * experts;
    Places places;
    // Without a branch, which would often be mispredicted.
    for (Size e = first; e < first + own && places.count < max_choices; ++e) {
      places.expert[places.count] = e;
      places.count += taken[e] >= 0 ? 1 : 0;
    }
    for (Size i = 0; i < places.count; ++i) {
      const Size e = places.expert[i];
      places.block[i] = blocks > 1 ? e * blocks / experts : 0;
      places.begin[i] = (slot(sample, taken[e]) * own + e - first) * width;
    }
    return places;
  }
  /// Returns the gates of a row, or null if `gates` is null.
  template <class T>
  KOKKOS_INLINE_FUNCTION const T* gates_of(const T* gates, Size row) const {
    return gates ? gates + rows.of_own(row) * experts : nullptr;
  }
  /// Returns the row of a slot of a sample.
  KOKKOS_INLINE_FUNCTION Size slot(Size sample, Size number) const {
    const Size ways = rows.share.parts;
    if (ways == 1) return sample * capacity + number;  // divisions take long
    // Without blocks, parts are one run each.
    const bool zigzag = rows.share.zigzag && rows.share.blocks > 0;
    const Split slots{capacity, ways, 1, zigzag, rows.share.blocks};
    Size part = 0, row = -1;
    while ((row = OwnRuns(SplitPart{slots, part}).row_of(number)) < 0) ++part;
    const Range held = slots.place(part);
    return rows.samples * held.begin + sample * held.count + row;
  }
};

/// Some experts of a sample, which one call of a kernel handles: on a host as many as fill vectors.
struct SomeExperts {
  static constexpr Size most = on_host ? 16 : 1;
  Size sample, first, count;

  /// Returns the number of parts into which the experts of a sample are divided.
  KOKKOS_INLINE_FUNCTION static Size parts(Size experts) { return (experts + most - 1) / most; }
  /// `i`: number of the part, those of a sample one after another.
  KOKKOS_INLINE_FUNCTION SomeExperts(Size i, Size experts)
      : sample(i / parts(experts)),
        first(i % parts(experts) * most),
        count(experts - first < most ? experts - first : most) {}

  /// Calls f(e) for the experts first + e. The calls must be independent.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_each(const F& f) const {
    for_each_independent(count, f);
  }
};

/// Numbers the positions of a sample that experts take: those with a gate, up to the capacity.
template <class T>
struct NumberSlots {
  const T* gates;
  std::int32_t* numbers;
  Size experts, capacity;
  SharedRows rows;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    const SomeExperts some(i, experts);
    std::int32_t next[some.most] = {};
    rows.for_each_position(some.sample, [&](Size row) {
      const Size first = row * experts + some.first;
      some.for_each([&](Size e) {
        const bool takes = static_cast<StateOf<T>>(gates[first + e]) != 0 && next[e] < capacity;
        numbers[first + e] = takes ? next[e] : -1;
        next[e] += takes ? 1 : 0;
      });
    });
  }
};

/// Returns the extents of dispatch() and of combine(): gates "st,f" and slots "sk,ec" of x "sp,c".
inline std::map<char, Extent> slot_sizes(Size width, Size positions, const Routing& routing) {
  return {{'p', positions},       {'t', positions},       {'k', routing.capacity},
          {'e', routing.experts}, {'f', routing.experts}, {'c', width}};
}

/// Elements of scratch memory for slots_of().
inline Size slots_scratch(const LayerSpec& layer, Size samples) {
  return samples * layer.size("tf");
}

/// Numbers the slots in the scratch memory of a layer whose second input has the gates.
template <class T>
ExpertSlots slots_of(const LayerCall<T>& call) {
  const LayerSpec& layer = call.layer;
  const Size experts = layer.size("f"), capacity = layer.size("k");
  const Range own = layer.part('e');
  const SharedRows rows(layer, layer.size("t"), call.samples);
  auto* const numbers = reinterpret_cast<std::int32_t*>(call.scratch.data());
  for_each("tessera::number_slots"_label, call.samples * SomeExperts::parts(experts),
           NumberSlots<T>{call.inputs[1].data(), numbers, experts, capacity, rows},
           slots_scratch(layer, call.samples));
  const Size blocks = std::max(call.blocks.in.blocks, call.blocks.out.blocks);
  return {numbers, experts, own.begin, own.count, rows, capacity, layer.size("c"), blocks};
}

/// Returns LayerKind::functions of kernels that search the slots of each row, whose time in sums
/// over rows was measured with eight experts.
inline LayerFunctions slots_functions(const LayerSpec& layer, PassCount sums) {
  const auto rows = static_cast<double>(layer.size("t"));
  return {.row_sums = {sums.forward * rows, sums.backward * rows}};
}

/// Copies `rows` to their slots, times `gates` unless that is null, and fills the others with -0,
/// which ranks of `context` add to the slots of others.
template <class T, class Y>
void fill_slots(const std::string& label, const ExpertSlots& slots, const Matrix<const T>& rows,
                const T* gates, const Matrix<Y>& filled) {
  using Math = StateOf<T>;
  set_minus_zero(filled);
  const Size width = slots.width;
  const T* const all = rows.data();
  Y* const out = filled.data();
  for_rows(
      label, rows.extent(0), width, KOKKOS_LAMBDA(const Row& row) {
        const T* const from = all + row.number * width;
        const T* const gate = slots.gates_of(gates, row.number);
        const auto places = slots.of(row.number);
        for (Size i = 0; i < places.count; ++i) {
          Y* const to = out + places.begin[i];
          const Math factor = gate ? Math(gate[places.expert[i]]) : Math(1);
          row.for_each(width, [=](Size j) { to[j] = factor * from[j]; });
        }
      });
}

/// A row of `sums` is the sum of its slots, times `gates` unless that is null.
template <class T, class Y>
void sum_slots(const std::string& label, const ExpertSlots& slots, const Matrix<const T>& filled,
               const T* gates, const Matrix<Y>& sums) {
  using Math = StateOf<T>;
  const Size width = slots.width;
  const T* const from = filled.data();
  Y* const out = sums.data();
  for_rows(
      label, sums.extent(0), width, KOKKOS_LAMBDA(const Row& row) {
        Y* const to = out + row.number * width;
        const T* const gate = slots.gates_of(gates, row.number);
        const auto places = slots.of(row.number);
        const auto gate_of = [=](Size i) { return gate ? Math(gate[places.expert[i]]) : Math(1); };
        // Most rows have two slots, or one if an expert was full. Compilers vectorise loops with a
        // fixed number of them only.
        if (places.count == 1 || places.count == 2) {
          const T* const a = from + places.begin[0];
          const Math of_a = gate_of(0);
          if (places.count == 1) return row.for_each(width, [=](Size j) { to[j] = of_a * a[j]; });
          const T* const b = from + places.begin[1];
          const Math of_b = gate_of(1);
          return row.for_each(width, [=](Size j) { to[j] = of_a * a[j] + of_b * b[j]; });
        }
        row.for_each(width, [=](Size j) {
          to[j] = places.template sum<Math>(
              [=](Size i) { return gate_of(i) * from[places.begin[i] + j]; });
        });
      });
}

}  // namespace tessera::detail
