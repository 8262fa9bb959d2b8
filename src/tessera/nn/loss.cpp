// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/split.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/loss.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string mse_label = "tessera::mse";
const std::string mae_label = "tessera::mae";
const std::string relative_l2_label = "tessera::relative_l2";
const std::string relative_l2_terms_label = "tessera::relative_l2_terms";
const std::string bce_label = "tessera::bce";
const std::string cross_entropy_label = "tessera::cross_entropy";
const std::string cross_entropy_terms_label = "tessera::cross_entropy_terms";
const std::string count_targets_label = "tessera::count_targets";
const std::string poisson_label = "tessera::poisson";
const std::string solution_error_label = "tessera::solution_error";

using Sum = Kokkos::View<double, Kokkos::LayoutRight, MemSpace>;

/// mse or mae, in one pass: reads p and t, writes the gradient, adds up the loss.
template <bool squared, class T>
void element_loss(Size n, const T* p, const StateOf<T>* t, StateOf<T> scale, const Sum& sum, T* g) {
  using Math = StateOf<T>;
  sum_each(
      squared ? mse_label : mae_label, n,
      KOKKOS_LAMBDA(Size i, double& s) {
        using std::fabs;
        const Math d = p[i] - t[i], sign = static_cast<Math>((d > Math(0)) - (d < Math(0)));
        if (g) g[i] = squared ? Math(2) * d * scale : scale * sign;
        s += squared ? static_cast<double>(d) * d : fabs(static_cast<double>(d));
      },
      sum);
}

/// |p - t|^2 and |t|^2 of a row.
struct Squares {
  double difference, target;

  template <class Team, class T>
  KOKKOS_INLINE_FUNCTION Squares(const Team& team, const T* p, const StateOf<T>* t, Size cols)
      : difference(detail::reduce_lanes<Kokkos::Sum, double>(team, cols,
                                                             [=](Size j) {
                                                               const double d =
                                                                   static_cast<double>(p[j]) - t[j];
                                                               return d * d;
                                                             })),
        target(detail::reduce_lanes<Kokkos::Sum, double>(
            team, cols, [=](Size j) { return static_cast<double>(t[j]) * t[j]; })) {}
};

/// The derivative of |p - t| / |t| by p is (p - t) / (|p - t| |t|). If the rows are parts of
/// samples, `terms` has the squares of whole samples, and the loss is divided in their proportion.
template <class T>
struct RelativeL2 {
  using Math = StateOf<T>;
  const T* p;
  const Math* t;
  Size cols;
  Math scale;
  const Math* terms;
  T* gradient;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, Size i, double& s) const {
    using std::sqrt;
    const T* const pi = p + i * cols;
    const Math* const ti = t + i * cols;
    const Squares own(team, pi, ti, cols);
    const double difference = terms ? terms[2 * i] : own.difference,
                 target = terms ? terms[2 * i + 1] : own.target;
    const double norms = sqrt(difference) * sqrt(target);
    const double share = terms && difference != 0 ? own.difference / difference : 1;
    Kokkos::single(Kokkos::PerTeam(team),
                   [&]() { s += share * (sqrt(difference) / sqrt(target)); });
    if (!gradient) return;
    const double factor = difference == 0 ? 0 : scale / norms;
    T* const out = gradient + i * cols;
    detail::for_each_lane(Kokkos::TeamVectorRange(team, cols), cols,
                          [=](Size j) { out[j] = static_cast<Math>((pi[j] - ti[j]) * factor); });
  }
};

/// Writes the squares of each row.
template <class T>
struct RelativeL2Terms {
  const T* p;
  const StateOf<T>* t;
  Size cols;
  StateOf<T>* terms;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank();
    const Squares own(team, p + i * cols, t + i * cols, cols);
    StateOf<T>* const out = terms + 2 * i;
    Kokkos::single(Kokkos::PerTeam(team), [=]() {
      out[0] = static_cast<StateOf<T>>(own.difference);
      out[1] = static_cast<StateOf<T>>(own.target);
    });
  }
};

/// max(l, 0) - l t + log(1 + exp(-|l|)) of logits l; its derivative is sigmoid(l) - t.
template <class T>
void binary_cross_entropy(Size n, const T* p, const StateOf<T>* t, StateOf<T> scale, const Sum& sum,
                          T* g) {
  using Math = StateOf<T>;
  sum_each(
      bce_label, n,
      KOKKOS_LAMBDA(Size i, double& s) {
        using std::log1p;
        const Math l = p[i];
        const Math e = detail::exp_of_nonpositive(l < Math(0) ? l : -l);
        if (g) g[i] = ((l < Math(0) ? e : Math(1)) / (Math(1) + e) - t[i]) * scale;
        s += (l > Math(0) ? l : Math(0)) - l * t[i] + log1p(e);
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
      poisson_label, rows,
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

/// A team per row of logits. A rank may have only some of the columns.
template <class T>
struct CrossEntropy {
  using Math = StateOf<T>;
  const T* logits = nullptr;
  const Math* target = nullptr;
  Size cols = 0, first = 0, classes = 0;
  const Math* terms = nullptr;  ///< (rows, 3 blocks) of all columns, or null
  Size blocks = 0;
  Math scale = 0;
  T* gradient = nullptr;
  Math ignored =
      Kokkos::Experimental::quiet_NaN_v<Math>;  ///< target of rows that do not count, or NaN
  const double* counted = nullptr;  ///< targets of the batch that count, or null if all do
  double targets = 0;               ///< all targets of the batch
  bool averages = true;             ///< `counted` divides the gradient as well

  struct Terms {
    Math largest, sum, right;  ///< sum: of exp(logit - largest)
  };

  template <class Team>
  KOKKOS_INLINE_FUNCTION Terms of_columns(const Team& team, Size i, Range columns) const {
    const T* const row = logits + i * cols + columns.begin;
    Math largest, sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, columns.count),
        [=](Size j, Math& most) { most = row[j] > most ? Math(row[j]) : most; },
        Kokkos::Max<Math>(largest));
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, columns.count),
        [=](Size j, Math& part) { part += detail::exp_of_nonpositive(Math(row[j]) - largest); },
        sum);
    const Size right = static_cast<Size>(target[i]) - first - columns.begin;
    return {largest, sum, right >= 0 && right < columns.count ? Math(row[right]) : Math(0)};
  }

  KOKKOS_INLINE_FUNCTION Terms of_blocks(Size i) const {
    const Math* const given = terms + i * 3 * blocks;
    Terms all{given[0], 0, 0};
    for (Size r = 1; r < blocks; ++r)
      all.largest = given[3 * r] > all.largest ? given[3 * r] : all.largest;
    for (Size r = 0; r < blocks; ++r) {
      all.sum += given[3 * r + 1] * detail::exp_of_nonpositive(given[3 * r] - all.largest);
      all.right += given[3 * r + 2];
    }
    return all;
  }

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, Size i, double& s) const {
    using std::log;
    const Math wanted = target[i];
    if (wanted == ignored) {
      T* const all = gradient;
      if (all)
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, cols),
                             [=, width = cols](Size j) { all[i * width + j] = Math(0); });
      return;
    }
    const Terms t = terms ? of_blocks(i) : of_columns(team, i, {0, cols});
    const double weight = counted ? targets / (*counted > 1 ? *counted : 1) : 1;
    const bool is_class = wanted >= Math(0) && wanted < static_cast<Math>(classes);
    const double right = is_class ? t.right : Kokkos::Experimental::quiet_NaN_v<double>;
    Kokkos::single(Kokkos::PerTeam(team),
                   [&]() { s += weight * (log(double(t.sum)) + t.largest - right); });
    if (!gradient) return;
    const T* const row = logits + i * cols;
    T* const out = gradient + i * cols;
    const Math less = averages ? static_cast<Math>(scale * weight) : scale;
    const Math factor = less / t.sum, largest = t.largest;
    const Size hit = static_cast<Size>(wanted) - first;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, cols), [=](Size j) {
      const Math share = factor * detail::exp_of_nonpositive(Math(row[j]) - largest);
      out[j] = j == hit ? share - less : share;
    });
  }
};

/// Computes the terms that ranks exchange, of `of.blocks` balanced blocks of their columns.
template <class T>
struct CrossEntropyTerms {
  CrossEntropy<T> of;
  StateOf<T>* terms;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank();
    for (Size b = 0; b < of.blocks; ++b) {
      const auto t = of.of_columns(team, i, balanced_split(of.cols, of.blocks, b));
      StateOf<T>* const out = terms + 3 * (of.blocks * i + b);
      Kokkos::single(Kokkos::PerTeam(team), [=]() {
        out[0] = t.largest;
        out[1] = t.sum;
        out[2] = t.right;
      });
    }
  }
};

}  // namespace

template <class T>
void cross_entropy_terms(const Matrix<const T>& logits, const Matrix<const StateOf<T>>& target,
                         Size first_class, const Matrix<StateOf<T>>& terms) {
  const Size rows = logits.extent(0), cols = logits.extent(1);
  const CrossEntropy<T> of{.logits = logits.data(),
                           .target = target.data(),
                           .cols = cols,
                           .first = first_class,
                           .blocks = static_cast<Size>(terms.extent(1)) / 3};
  for_each_row(cross_entropy_terms_label, rows, cols, CrossEntropyTerms<T>{of, terms.data()});
}

template <class T>
void relative_l2_terms(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                       const Matrix<StateOf<T>>& terms) {
  const Size rows = prediction.extent(0), cols = prediction.extent(1);
  for_each_row(relative_l2_terms_label, rows, cols,
               RelativeL2Terms<T>{prediction.data(), target.data(), cols, terms.data()});
}

template <class State>
void count_targets(const Matrix<const State>& target, double ignored, const Vector<double>& sums,
                   Size slot) {
  const State* const t = target.data();
  const State number = static_cast<State>(ignored);
  sum_each(
      count_targets_label, target.extent(0) * target.extent(1),
      KOKKOS_LAMBDA(Size i, double& count) { count += t[i] == number ? 0 : 1; },
      Sum(sums.data() + slot));
}

template <class T>
void add_solution_error(const Matrix<const T>& prediction, const Matrix<const StateOf<T>>& target,
                        const Vector<double>& sums, Size slot) {
  const Size cols = static_cast<Size>(prediction.extent(1)), rows = prediction.extent(0);
  const T* const p = prediction.data();
  const StateOf<T>* const t = target.data();
  double* const out = sums.data() + slot;
  // One thread fixes the order of the sums. Validations are rare.
  for_each(
      solution_error_label, 1,
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
                       const Vector<double>& sums, Size slot, const Matrix<T>& gradient,
                       const LossDetails<StateOf<T>>& details) {
  const Size rows = prediction.extent(0), cols = prediction.extent(1);
  const Size target_cols = targets_of(kind) == Targets::classes ? 1 : cols;
  if (static_cast<Size>(target.extent(0)) != rows ||
      static_cast<Size>(target.extent(1)) != target_cols)
    throw Error(ExitCode::usage, "loss: prediction and target differ in shape");
  const Sum sum(sums.data() + slot);
  const StateOf<T> scale =
      static_cast<StateOf<T>>(details.scale) / static_cast<StateOf<T>>(global_count);
  const T* const p = prediction.data();
  const StateOf<T>* const t = target.data();
  T* const g = gradient.data();
  switch (kind) {
    case LossKind::mse:
      return element_loss<true>(rows * cols, p, t, scale, sum, g);
    case LossKind::mae:
      return element_loss<false>(rows * cols, p, t, scale, sum, g);
    case LossKind::relative_l2:
      return sum_each_row(relative_l2_label, rows, cols,
                          RelativeL2<T>{p, t, cols, scale, details.terms.data(), g}, sum);
    case LossKind::bce:
      return binary_cross_entropy(rows * cols, p, t, scale, sum, g);
    case LossKind::cross_entropy: {
      const Size classes = details.classes < 0 ? cols : details.classes;
      // The order of the sum over rows depends on the columns of all ranks, not on the rank's own.
      return sum_each_row(cross_entropy_label, rows, classes,
                          CrossEntropy<T>{.logits = p,
                                          .target = t,
                                          .cols = cols,
                                          .first = details.first_class,
                                          .classes = classes,
                                          .terms = details.terms.data(),
                                          .blocks = static_cast<Size>(details.terms.extent(1)) / 3,
                                          .scale = scale,
                                          .gradient = g,
                                          .ignored = static_cast<StateOf<T>>(details.ignored),
                                          .counted = details.counted,
                                          .targets = static_cast<double>(details.targets),
                                          .averages = details.averages},
                          sum);
    }
    case LossKind::poisson:
      return poisson(rows, cols, p, t, scale, details.boundary_weight, sum, g);
  }
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template void loss_and_gradient(LossKind, const Matrix<const T>&,                                \
                                  const Matrix<const StateOf<T>>&, Size, const Vector<double>&,    \
                                  Size, const Matrix<T>&, const LossDetails<StateOf<T>>&);         \
  template void add_solution_error(const Matrix<const T>&, const Matrix<const StateOf<T>>&,        \
                                   const Vector<double>&, Size);                                   \
  template void cross_entropy_terms(const Matrix<const T>&, const Matrix<const StateOf<T>>&, Size, \
                                    const Matrix<StateOf<T>>&);                                    \
  template void relative_l2_terms(const Matrix<const T>&, const Matrix<const StateOf<T>>&,         \
                                  const Matrix<StateOf<T>>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE
template void count_targets(const Matrix<const float>&, double, const Vector<double>&, Size);
template void count_targets(const Matrix<const double>&, double, const Vector<double>&, Size);

}  // namespace tessera
