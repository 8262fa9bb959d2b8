// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/loss.hpp>

namespace tessera {
namespace {

// Made once: a launch then needs no memory for its label.
const std::string mse_label = "tessera::mse";
const std::string mae_label = "tessera::mae";
const std::string relative_l2_label = "tessera::relative_l2";

using Sum = Kokkos::View<double, Kokkos::LayoutRight, MemSpace>;

/// One pass: reads p and t, writes the gradient, adds up the loss.
template <class T>
void element_loss(Size n, const T* p, const StateOf<T>* t, StateOf<T> scale, const Sum& sum, T* g,
                  bool squared) {
  using Math = StateOf<T>;
  if (squared) {
    sum_each(
        mse_label, n,
        KOKKOS_LAMBDA(Size i, double& s) {
          const Math d = p[i] - t[i];
          if (g) g[i] = Math(2) * d * scale;
          s += static_cast<double>(d) * d;
        },
        sum);
  } else {
    sum_each(
        mae_label, n,
        KOKKOS_LAMBDA(Size i, double& s) {
          using std::fabs;
          const Math d = p[i] - t[i];
          if (g) g[i] = scale * static_cast<Math>((d > Math(0)) - (d < Math(0)));
          s += fabs(static_cast<double>(d));
        },
        sum);
  }
}

/// d|p - t| / dp = (p - t) / |p - t|, over |t|.
template <class T>
void relative_l2(Size rows, Size cols, const T* p, const StateOf<T>* t, StateOf<T> scale,
                 const Sum& sum, T* g) {
  using Math = StateOf<T>;
  sum_each(
      relative_l2_label, rows,
      KOKKOS_LAMBDA(Size i, double& s) {
        using std::sqrt;
        const T* const pi = p + i * cols;
        const Math* const ti = t + i * cols;
        double difference = 0, target = 0;
        for (Size j = 0; j < cols; ++j) {
          const double d = static_cast<double>(pi[j]) - ti[j];
          difference += d * d;
          target += static_cast<double>(ti[j]) * ti[j];
        }
        const double norms = sqrt(difference) * sqrt(target);
        s += sqrt(difference) / sqrt(target);
        if (!g) return;
        const double factor = difference == 0 ? 0 : scale / norms;
        for (Size j = 0; j < cols; ++j)
          g[i * cols + j] = static_cast<Math>((pi[j] - ti[j]) * factor);
      },
      sum, rows * cols);
}

}  // namespace

template <class T>
void loss_and_gradient(LossKind kind, const Matrix<const T>& prediction,
                       const Matrix<const StateOf<T>>& target, Size global_count,
                       const Vector<double>& sums, Size slot, const Matrix<T>& gradient,
                       double loss_scale) {
  const Size rows = prediction.extent(0), cols = prediction.extent(1);
  if (target.extent(0) != prediction.extent(0) || target.extent(1) != prediction.extent(1)) {
    throw Error(ExitCode::usage, "loss: prediction and target differ in shape");
  }
  const Sum sum(sums.data() + slot);
  const StateOf<T> scale =
      static_cast<StateOf<T>>(loss_scale) / static_cast<StateOf<T>>(global_count);
  if (kind == LossKind::relative_l2) {
    relative_l2(rows, cols, prediction.data(), target.data(), scale, sum, gradient.data());
  } else {
    element_loss(rows * cols, prediction.data(), target.data(), scale, sum, gradient.data(),
                 kind == LossKind::mse);
  }
}

#define TESSERA_INSTANTIATE(T)                                                                  \
  template void loss_and_gradient(LossKind, const Matrix<const T>&,                             \
                                  const Matrix<const StateOf<T>>&, Size, const Vector<double>&, \
                                  Size, const Matrix<T>&, double);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
TESSERA_INSTANTIATE(BFloat16)
TESSERA_INSTANTIATE(Float16)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
