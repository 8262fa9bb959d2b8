// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/half_float.hpp>
#include <tessera/base/region.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/random/for_each_numbered.hpp>

namespace tessera {
namespace {

// Kernels use plain pointers, because loops over them vectorise. A shard may begin at any element.

template <class T>
struct Arguments {
  Size n;
  T* p;
  const T* g;
  T learning_rate, scale;
  T weight_decay;
};

/// Moments of a run in the type M, which kernels read and write as T.
template <class T, class M>
struct Moments {
  M* data;
  Key key;  ///< of this step
  BlockRun place;

  KOKKOS_FUNCTION T operator[](Size i) const { return static_cast<T>(data[i]); }
  /// Returns the random bits with which an element of a step is rounded: 16 for each moment.
  KOKKOS_FUNCTION std::uint32_t bits(Size number) const {
    return std::is_same_v<M, T> ? 0 : random_bits(key, static_cast<std::uint64_t>(number));
  }
  KOKKOS_FUNCTION void set(Size i, T value, std::uint32_t bits) const {
    if constexpr (std::is_same_v<M, T>)
      data[i] = value;
    else
      data[i] = rounded_at_random(static_cast<float>(value), bits);
  }
};

template <class F>
struct WithoutNumber {
  F f;
  KOKKOS_INLINE_FUNCTION void operator()(Size i) const { f(i, 0); }
};

/// Calls f(i, number) for the elements of a run. Only moments that are rounded have numbers.
template <class T, class M, class F>
void for_each_of(const std::string& label, Size n, const Moments<T, M>& m, const F& f) {
  if constexpr (std::is_same_v<M, T>)
    for_each(label, n, WithoutNumber<F>{f});
  else
    for_each_numbered(label, n, m.place, f);
}

template <class T>
void sgd(const Arguments<T>& a) {
  T* const p = a.p;
  const T* const g = a.g;
  const T rate = a.learning_rate * a.scale;
  for_each(
      "tessera::sgd"_label, a.n, KOKKOS_LAMBDA(Size i) { p[i] -= rate * g[i]; });
}

template <class T, class M>
void momentum_sgd(const Arguments<T>& a, T momentum, bool nesterov, const Moments<T, M>& m) {
  T* const p = a.p;
  const T* const g = a.g;
  const T lr = a.learning_rate, scale = a.scale;
  // The step is m, or g + momentum m with nesterov.
  const T of_gradient = nesterov ? T(1) : T(0), of_moment = nesterov ? momentum : T(1);
  for_each_of(
      "tessera::momentum_sgd"_label, a.n, m, KOKKOS_LAMBDA(Size i, Size number) {
        const T gi = g[i] * scale;
        const T mi = gi + momentum * m[i];
        m.set(i, mi, m.bits(number));
        p[i] -= lr * (of_gradient * gi + of_moment * mi);
      });
}

template <class T>
void move_by_sign(const Arguments<T>& a, T rate) {
  T* const p = a.p;
  const T* const g = a.g;
  for_each(
      "tessera::move_by_sign"_label, a.n, KOKKOS_LAMBDA(Size i) {
        p[i] -= g[i] > 0 ? rate : g[i] < 0 ? -rate : T(0);
      });
}

/// Returns 1 / (1 - beta^t). Rounding beta to float32 changes 1 - beta by up to 3e-8. optax rounds,
/// and the published digits of the tutorial need it: with beta = 0.999 a step changes by 6e-6 of
/// its length. A larger beta would change it more, and is not rounded.
template <class T>
T bias_correction(double beta, Size t) {
  if (beta <= 0.999) return T(1) / (T(1) - std::pow(static_cast<T>(beta), static_cast<T>(t)));
  return static_cast<T>(-1 / std::expm1(static_cast<double>(t) * std::log(beta)));
}

template <class T, class M>
void adam(const Arguments<T>& a, const OptimizerConfig& config, Size t, const Moments<T, M>& m,
          const Moments<T, M>& v) {
  T* const p = a.p;
  const T* const g = a.g;
  const T lr = a.learning_rate, scale = a.scale;
  const T b1 = static_cast<T>(config.beta1), b2 = static_cast<T>(config.beta2);
  const T c1 = static_cast<T>(1 - config.beta1), c2 = static_cast<T>(1 - config.beta2);
  // Corrections are factors: memory hides one division and one root per element, not three
  // divisions.
  const T correction1 = bias_correction<T>(config.beta1, t);
  const T correction2 = bias_correction<T>(config.beta2, t);
  const T epsilon = static_cast<T>(config.epsilon);
  const T weight_decay = a.weight_decay;
  for_each_of(
      "tessera::adam"_label, a.n, m, KOKKOS_LAMBDA(Size i, Size number) {
        using std::sqrt;
        const T gi = g[i] * scale;
        const T mi = c1 * gi + b1 * m[i];
        const T vi = c2 * (gi * gi) + b2 * v[i];
        const std::uint32_t bits = m.bits(number);
        m.set(i, mi, bits);
        v.set(i, vi, bits >> 16);
        const T direction = (mi * correction1) / (sqrt(vi * correction2) + epsilon);
        p[i] -= lr * (direction + weight_decay * p[i]);
      });
}

template <class T, class M>
void rmsprop(const Arguments<T>& a, const OptimizerConfig& config, const Moments<T, M>& v) {
  T* const p = a.p;
  const T* const g = a.g;
  const T lr = a.learning_rate, scale = a.scale;
  const T decay = static_cast<T>(config.decay), rest = static_cast<T>(1 - config.decay);
  const T epsilon = static_cast<T>(config.epsilon);
  for_each_of(
      "tessera::rmsprop"_label, a.n, v, KOKKOS_LAMBDA(Size i, Size number) {
        using std::sqrt;
        const T gi = g[i] * scale;
        const T vi = rest * (gi * gi) + decay * v[i];
        v.set(i, vi, v.bits(number));
        p[i] -= lr * gi / sqrt(vi + epsilon);
      });
}

/// m is the running mean of g; the direction looks one step ahead (Nesterov).
template <class T, class M>
void direct_muon(const Arguments<T>& a, T momentum, const Moments<T, M>& m, T* direction) {
  const T* const g = a.g;
  const T scale = a.scale, rest = 1 - momentum;
  for_each_of(
      "tessera::muon_direction"_label, a.n, m, KOKKOS_LAMBDA(Size i, Size number) {
        const T gi = rest * (g[i] * scale);
        const T mi = gi + momentum * m[i];
        m.set(i, mi, m.bits(number));
        direction[i] = gi + momentum * mi;
      });
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(const OptimizerConfig& config, Size n, Size matrices)
    : config_(config), n_(n), matrices_(matrices) {
  validate(config);
  const Size elements = moments_per_parameter(config) * n - matrices;
  if (config.moments_type == MomentsType::bf16)
    bf16_moments_ = allocate_zeros<BFloat16>("tessera::optimizer_moments", elements);
  else
    moments_ = allocate_zeros<T>("tessera::optimizer_moments", elements);
}

template <class T>
void Optimizer<T>::step(const Vector<T>& params, const Vector<const T>& grads, T learning_rate,
                        T grad_scale) {
  const ParameterRun<T> run{params, grads};
  step(std::span(&run, 1), learning_rate, grad_scale);
}

template <class T>
void Optimizer<T>::step(std::span<const ParameterRun<T>> runs, T learning_rate, T grad_scale) {
  Size params = 0, grads = 0;
  for (const ParameterRun<T>& run : runs) {
    params += static_cast<Size>(run.params.extent(0));
    grads += static_cast<Size>(run.grads.extent(0));
  }
  if (params != n_ || grads != n_) {
    throw Error(ExitCode::usage, "optimizer: created for " + std::to_string(n_) +
                                     " parameters, but called with " + std::to_string(params) +
                                     " and " + std::to_string(grads) + " gradients");
  }
  const Region region("tessera::update");
  ++steps_;
  std::vector<ParameterRun<T>> placed(runs.begin(), runs.end());
  place_moments(placed);
  for (const ParameterRun<T>& run : placed) update(run, learning_rate, grad_scale);
}

template <class T>
void Optimizer<T>::place_moments(std::span<ParameterRun<T>> runs) {
  Size first = 0, second = 0;
  for (ParameterRun<T>& run : runs) {
    run.first = first, run.second = second;
    first += static_cast<Size>(run.params.extent(0));
    if (!run.is_matrix) second += static_cast<Size>(run.params.extent(0));
  }
}

template <class T>
void Optimizer<T>::update(const ParameterRun<T>& run, T learning_rate, T grad_scale,
                          const Vector<T>& direction) {
  if (config_.moments_type == MomentsType::bf16)
    update_in(bf16_moments_, run, learning_rate, grad_scale, direction);
  else
    update_in(moments_, run, learning_rate, grad_scale, direction);
}

template <class T>
void Optimizer<T>::move(const ParameterRun<T>& run, T learning_rate, T scale,
                        const Vector<T>& direction) const {
  T* const p = run.params.data();
  const T* const d = direction.data();
  const T decay = run.decays ? static_cast<T>(config_.weight_decay) : T(0);
  for_each(
      "tessera::muon"_label, run.params.extent(0),
      KOKKOS_LAMBDA(Size i) { p[i] -= learning_rate * (scale * d[i] + decay * p[i]); });
}

template <class T>
template <class M>
void Optimizer<T>::update_in(const Vector<M>& moments, const ParameterRun<T>& run, T learning_rate,
                             T grad_scale, const Vector<T>& direction) {
  const Arguments<T> a{.n = static_cast<Size>(run.params.extent(0)),
                       .p = run.params.data(),
                       .g = run.grads.data(),
                       .learning_rate = learning_rate,
                       .scale = grad_scale,
                       .weight_decay = run.decays ? static_cast<T>(config_.weight_decay) : T(0)};
  if (run.sign_rate != 0) return move_by_sign(a, run.sign_rate);
  const auto moment = [&](Size i) {
    return Moments<T, M>{moments.data() + (i == 0 ? run.first : n_ + run.second),
                         fold_in(run.key, static_cast<std::uint32_t>(steps_)), run.place};
  };
  switch (config_.kind) {
    case OptimizerKind::sgd:
      if (config_.momentum == 0) return sgd(a);
      return momentum_sgd(a, static_cast<T>(config_.momentum), config_.nesterov, moment(0));
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return adam(a, config_, steps_, moment(0), moment(1));
    case OptimizerKind::muon:
      if (run.is_matrix)
        return direct_muon(a, static_cast<T>(config_.muon_momentum), moment(0), direction.data());
      return adam(a, config_, steps_, moment(0), moment(1));
    case OptimizerKind::rmsprop:
      return rmsprop(a, config_, moment(0));
  }
}

template <class T>
Vector<T> Optimizer<T>::moment(Size i) const {
  return alias_vector(moments_.data() + i * n_, n_ - i * matrices_);
}

template <class T>
Vector<BFloat16> Optimizer<T>::bf16_moment(Size i) const {
  return alias_vector(bf16_moments_.data() + i * n_, n_ - i * matrices_);
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace tessera
