// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <tessera/base/error.hpp>
#include <tessera/base/split.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/layers/shared_rows.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

using Sum = Kokkos::View<double, Kokkos::LayoutRight, MemSpace>;

// The losses that are sums over elements: the term of a prediction p and a target t, and the
// derivative of the term by p.

struct SquaredError {
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static double term(Math p, Math t) {
    const Math d = p - t;
    return static_cast<double>(d) * d;
  }
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static Math slope(Math p, Math t) {
    return Math(2) * (p - t);
  }
};

struct AbsoluteError {
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static double term(Math p, Math t) {
    using std::fabs;
    return fabs(static_cast<double>(p - t));
  }
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static Math slope(Math p, Math t) {
    const Math d = p - t;
    return static_cast<Math>((d > Math(0)) - (d < Math(0)));
  }
};

/// max(l, 0) - l t + log(1 + exp(-|l|)) of a logit l; its derivative is sigmoid(l) - t.
struct BinaryCrossEntropy {
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static Math exp_of_less(Math l) {
    return detail::exp_of_nonpositive(l < Math(0) ? l : -l);
  }
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static double term(Math l, Math t) {
    return (l > Math(0) ? l : Math(0)) - l * t + detail::log1p_of_unit(exp_of_less(l));
  }
  template <class Math>
  KOKKOS_FORCEINLINE_FUNCTION static Math slope(Math l, Math t) {
    const Math e = exp_of_less(l);
    return (l < Math(0) ? e : Math(1)) / (Math(1) + e) - t;
  }
};

/// Adds up the terms of n elements and sets g, unless it is null, to their slopes times `scale`. An
/// element's exponential is computed twice: loops that only add up or only store vectorise.
template <class Loss, class T>
void element_loss(const std::string& label, Size n, const T* p, const StateOf<T>* t,
                  StateOf<T> scale, const Sum& sum, T* g) {
  using Math = StateOf<T>;
  constexpr Size of_row = 1024;
  sum_rows(
      label, (n + of_row - 1) / of_row, of_row,
      KOKKOS_LAMBDA(const Row& row, double& s) {
        const Size at = row.number * of_row, count = n - at < of_row ? n - at : of_row;
        const T* const pi = p + at;
        const Math* const ti = t + at;
        const double terms =
            row.sum<double>(count, [=](Size j) { return Loss::term(Math(pi[j]), ti[j]); });
        row.once([&]() { s += terms; });
        if (!g) return;
        T* const out = g + at;
        row.for_each(count, [=](Size j) { out[j] = scale * Loss::slope(Math(pi[j]), ti[j]); });
      },
      sum);
}

/// |p - t|^2 and |t|^2 of a row.
struct Squares {
  double difference, target;
};
template <class T>
KOKKOS_INLINE_FUNCTION Squares squares_of(const Row& row, const T* p, const StateOf<T>* t,
                                          Size cols) {
  const double difference = row.sum<double>(cols, [=](Size j) {
    const double d = static_cast<double>(p[j]) - t[j];
    return d * d;
  });
  return {difference,
          row.sum<double>(cols, [=](Size j) { return static_cast<double>(t[j]) * t[j]; })};
}

/// The derivative of |p - t| / |t| by p is (p - t) / (|p - t| |t|). If the rows are parts of
/// samples, `terms` has the squares of whole samples, and the loss is divided in their proportion.
template <class T>
void relative_l2(Size rows, Size cols, const T* p, const StateOf<T>* t, StateOf<T> scale,
                 const LossDetails<StateOf<T>>& details, const Sum& sum, T* g) {
  using Math = StateOf<T>;
  const Math* const terms = details.terms.data();
  const Size blocks = static_cast<Size>(details.terms.extent(1)) / 2;
  const double counted = details.counted_part.value_or(-1);
  sum_rows(
      "tessera::relative_l2"_label, rows, cols,
      KOKKOS_LAMBDA(const Row& row, double& s) {
        using std::sqrt;
        const Size at = row.number * cols;
        const T* const pi = p + at;
        const Math* const ti = t + at;
        const Squares own = squares_of(row, pi, ti, cols);
        Math all[2] = {0, 0};
        for (Size i = 0; i < 2 * blocks; ++i) all[i % 2] += terms[2 * blocks * row.number + i];
        const double difference = terms ? all[0] : own.difference,
                     target = terms ? all[1] : own.target;
        const double norms = sqrt(difference) * sqrt(target);
        const double fraction = terms && counted >= 0      ? counted
                                : terms && difference != 0 ? own.difference / difference
                                                           : 1;
        row.once([&]() { s += fraction * (sqrt(difference) / sqrt(target)); });
        if (!g) return;
        const double factor = difference == 0 ? 0 : scale / norms;
        T* const out = g + at;
        row.for_each(cols, [=](Size j) { out[j] = static_cast<Math>((pi[j] - ti[j]) * factor); });
      },
      sum);
}

/// Columns of p: u, u_i, u_ii, u on the boundary.
template <class T>
void poisson(Size rows, Size cols, const T* p, const StateOf<T>* t, StateOf<T> scale, double weight,
             const Sum& sum, T* g) {
  using Math = StateOf<T>;
  const Size dimensions = (cols - 2) / 2, last = cols - 1;
  sum_each(
      "tessera::poisson"_label, rows,
      KOKKOS_LAMBDA(Size i, double& s) {
        const T* const pi = p + i * cols;
        const Math* const ti = t + i * cols;
        Math residual = ti[0];
        for (Size d = 0; d < dimensions; ++d) residual += pi[1 + dimensions + d];
        const Math boundary = pi[last] - ti[last];
        s += static_cast<double>(residual) * residual + weight * boundary * boundary;
        if (!g) return;
        T* const gi = g + i * cols;
        for (Size j = 0; j <= dimensions; ++j) gi[j] = Math(0);
        for (Size d = 0; d < dimensions; ++d) gi[1 + dimensions + d] = Math(2) * residual * scale;
        gi[last] = Math(2) * static_cast<Math>(weight) * boundary * scale;
      },
      sum, rows * cols);
}

/// The largest logit of a row, the sum of exp(logit - largest), and the target's logit or 0.
template <class Math>
struct ClassTerms {
  Math largest, sum, right;
};

/// `right`: column of the target, which need not be among the `cols` columns.
template <class T>
KOKKOS_INLINE_FUNCTION ClassTerms<StateOf<T>> class_terms(const Row& row, const T* logits,
                                                          Size cols, Size right) {
  using Math = StateOf<T>;
  const Math largest = row.max<Math>(cols, [=](Size j) { return Math(logits[j]); });
  const Math sum = row.sum<Math>(
      cols, [=](Size j) { return detail::exp_of_nonpositive(Math(logits[j]) - largest); });
  return {largest, sum, right >= 0 && right < cols ? Math(logits[right]) : Math(0)};
}

/// Returns the terms of all columns from those of blocks of them.
template <class Math>
KOKKOS_INLINE_FUNCTION ClassTerms<Math> joined_terms(const Math* terms, Size blocks) {
  ClassTerms<Math> all{terms[0], 0, 0};
  for (Size r = 1; r < blocks; ++r)
    all.largest = terms[3 * r] > all.largest ? terms[3 * r] : all.largest;
  for (Size r = 0; r < blocks; ++r) {
    all.sum += terms[3 * r + 1] * detail::exp_of_nonpositive(terms[3 * r] - all.largest);
    all.right += terms[3 * r + 2];
  }
  return all;
}

template <class T>
void cross_entropy(Size rows, Size cols, const T* p, const StateOf<T>* t, StateOf<T> scale,
                   const LossDetails<StateOf<T>>& details, const Sum& sum, T* g) {
  using Math = StateOf<T>;
  const Size first = details.first_class, classes = details.classes < 0 ? cols : details.classes,
             blocks = static_cast<Size>(details.terms.extent(1)) / 3;
  const Math *const terms = details.terms.data(), ignored = static_cast<Math>(details.ignored);
  const double *const counted = details.counted, targets = static_cast<double>(details.targets);
  const bool averages = details.averages;
  // The order of the sum over rows depends on the columns of all ranks, not on the rank's own.
  sum_rows(
      "tessera::cross_entropy"_label, rows, classes,
      KOKKOS_LAMBDA(const Row& row, double& s) {
        using std::log;
        const T* const in = p + row.number * cols;
        T* const out = g ? g + row.number * cols : nullptr;
        const Math wanted = t[row.number];
        if (wanted == ignored) {
          if (out) row.for_each(cols, [=](Size j) { out[j] = Math(0); });
          return;
        }
        const Size hit = static_cast<Size>(wanted) - first;
        const ClassTerms<Math> all = terms ? joined_terms(terms + row.number * 3 * blocks, blocks)
                                           : class_terms(row, in, cols, hit);
        const double weight = counted ? targets / (*counted > 1 ? *counted : 1) : 1;
        const bool is_class = wanted >= Math(0) && wanted < static_cast<Math>(classes);
        const double right = is_class ? all.right : Kokkos::Experimental::quiet_NaN_v<double>;
        row.once([&]() { s += weight * (log(double(all.sum)) + all.largest - right); });
        if (!out) return;
        const Math less = averages ? static_cast<Math>(scale * weight) : scale;
        const Math factor = less / all.sum, largest = all.largest;
        row.for_each(cols, [=](Size j) {
          const Math slope = factor * detail::exp_of_nonpositive(Math(in[j]) - largest);
          out[j] = j == hit ? slope - less : slope;
        });
      },
      sum);
}

}  // namespace

template <class T>
void cross_entropy_terms(const Matrix<const T>& logits, const Matrix<const StateOf<T>>& target,
                         Size first_class, const SplitPart& columns,
                         const Matrix<StateOf<T>>& terms) {
  using Math = StateOf<T>;
  const Size rows = logits.extent(0), cols = logits.extent(1);
  const bool splits = columns.blocks > 0;
  const Range own = splits ? columns.blocks_of(columns.part) : Range{0, 1};
  const T* const p = logits.data();
  const Math* const t = target.data();
  Math* const out = terms.data();
  for_rows(
      "tessera::cross_entropy_terms"_label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
        const Size right = static_cast<Size>(t[row.number]) - first_class;
        for (Size b = 0; b < own.count; ++b) {
          const Range block = splits ? columns.block(own.begin + b) : Range{first_class, cols};
          const Size begin = block.begin - first_class;
          const ClassTerms<Math> made =
              class_terms(row, p + row.number * cols + begin, block.count, right - begin);
          Math* const to = out + 3 * (own.count * row.number + b);
          row.once([=]() { to[0] = made.largest, to[1] = made.sum, to[2] = made.right; });
        }
      });
}

template <class T>
void relative_l2_terms(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                       const SplitPart& share, const Matrix<StateOf<T>>& terms) {
  using Math = StateOf<T>;
  const Size rows = prediction.extent(0), cols = prediction.extent(1),
             blocks = static_cast<Size>(terms.extent(1)) / 2,
             width = cols / std::max<Size>(1, share.own_count());
  const T* const p = prediction.data();
  const Math* const t = target.data();
  Math* const out = terms.data();
  const detail::OwnRuns own(share);
  const Range mine = share.blocks > 0 ? share.blocks_of(share.part) : Range{0, 1};
  for_rows(
      "tessera::relative_l2_terms"_label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
        for (Size b = 0; b < blocks; ++b) {
          Squares sum{0, 0};
          const auto add = [&](Size position, Size positions) {
            const Size at = row.number * cols + position * width;
            const Squares more = squares_of(row, p + at, t + at, positions * width);
            sum = {sum.difference + more.difference, sum.target + more.target};
          };
          if (share.blocks == 0) add(0, own.count());
          for (Size number = 0; share.blocks > 0 && number < 2; ++number)
            if (const Range run = share.run_of({b, 1}, number); b >= mine.begin && b < mine.end())
              add(own.row_of(run.begin), run.count);
          Math* const to = out + 2 * (blocks * row.number + b);
          row.once([=]() {
            to[0] = static_cast<Math>(sum.difference);
            to[1] = static_cast<Math>(sum.target);
          });
        }
      });
}

template <class State>
void count_targets(const Matrix<const State>& target, double ignored, const Vector<double>& count) {
  const State* const t = target.data();
  const State number = static_cast<State>(ignored);
  sum_each(
      "tessera::count_targets"_label, target.extent(0) * target.extent(1),
      KOKKOS_LAMBDA(Size i, double& sum) { sum += t[i] == number ? 0 : 1; }, Sum(count.data()));
}

template <class T>
void add_solution_error(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                        const Vector<double>& sums) {
  const Size cols = static_cast<Size>(prediction.extent(1)), rows = prediction.extent(0);
  const T* const p = prediction.data();
  const StateOf<T>* const t = target.data();
  double* const out = sums.data();
  // One thread fixes the order of the sums. Validations are rare.
  for_each(
      "tessera::solution_error"_label, 1,
      KOKKOS_LAMBDA(Size) {
        for (Size i = 0; i < rows; ++i) {
          const double solution = t[i * cols + 1], error = p[i * cols] - solution;
          out[0] += error * error;
          out[1] += solution * solution;
        }
      },
      rows);
}

template <class T>
void loss_and_gradient(LossKind kind, const Matrix<const T>& prediction,
                       const Matrix<const StateOf<T>>& target, Size global_count,
                       const Vector<double>& loss, const Matrix<T>& gradient,
                       const LossDetails<StateOf<T>>& details) {
  const Size rows = prediction.extent(0), cols = prediction.extent(1);
  const Size target_cols = targets_of(kind) == Targets::classes ? 1 : cols;
  if (static_cast<Size>(target.extent(0)) != rows ||
      static_cast<Size>(target.extent(1)) != target_cols)
    throw Error(ExitCode::usage, "loss: prediction and target differ in shape");
  const Sum sum(loss.data());
  const StateOf<T> scale =
      static_cast<StateOf<T>>(details.scale) / static_cast<StateOf<T>>(global_count);
  const T* const p = prediction.data();
  const StateOf<T>* const t = target.data();
  T* const g = gradient.data();
  switch (kind) {
    case LossKind::mse:
      return element_loss<SquaredError>("tessera::mse"_label, rows * cols, p, t, scale, sum, g);
    case LossKind::mae:
      return element_loss<AbsoluteError>("tessera::mae"_label, rows * cols, p, t, scale, sum, g);
    case LossKind::relative_l2:
      return relative_l2(rows, cols, p, t, scale, details, sum, g);
    case LossKind::bce:
      return element_loss<BinaryCrossEntropy>("tessera::bce"_label, rows * cols, p, t, scale, sum,
                                              g);
    case LossKind::cross_entropy:
      return cross_entropy(rows, cols, p, t, scale, details, sum, g);
    case LossKind::poisson:
      return poisson(rows, cols, p, t, scale, details.boundary_weight, sum, g);
  }
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template void loss_and_gradient(LossKind, const Matrix<const T>&,                                \
                                  const Matrix<const StateOf<T>>&, Size, const Vector<double>&,    \
                                  const Matrix<T>&, const LossDetails<StateOf<T>>&);               \
  template void add_solution_error(const Matrix<const T>&, const Matrix<const StateOf<T>>&,        \
                                   const Vector<double>&);                                         \
  template void cross_entropy_terms(const Matrix<const T>&, const Matrix<const StateOf<T>>&, Size, \
                                    const SplitPart&, const Matrix<StateOf<T>>&);                  \
  template void relative_l2_terms(const Matrix<const T>&, const Matrix<const StateOf<T>>&,         \
                                  const SplitPart&, const Matrix<StateOf<T>>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE
template void count_targets(const Matrix<const float>&, double, const Vector<double>&);
template void count_targets(const Matrix<const double>&, double, const Vector<double>&);

}  // namespace tessera
