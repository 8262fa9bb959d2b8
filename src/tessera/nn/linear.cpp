// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <type_traits>

#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/linear.hpp>

namespace tessera {
namespace {

// Made once: a launch then needs no memory for its label.
const std::string bias_activation_label = "tessera::bias_activation";
const std::string activation_bias_backward_label = "tessera::activation_bias_backward";

using TeamPolicy = Kokkos::TeamPolicy<ExecSpace, Kokkos::IndexType<Size>>;
using Team = TeamPolicy::member_type;
template <class T>
using Scratch =
    Kokkos::View<T*, ExecSpace::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

constexpr bool on_host =
    Kokkos::SpaceAccessibility<Kokkos::DefaultHostExecutionSpace, MemSpace>::accessible &&
    std::is_same_v<ExecSpace, Kokkos::DefaultHostExecutionSpace>;

/// y = act(z + b), a team per row, so that columns are contiguous for vector lanes.
template <class T, Activation A>
struct BiasActivation {
  T* z;
  const T* bias;
  T* y;
  Size cols;
  static constexpr bool keeps_sum = needs_preactivation(A);  // which is a host function

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    T* const z_row = z + team.league_rank() * cols;
    T* const y_row = y + team.league_rank() * cols;
    const T* const b = bias;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, cols), [=](Size j) {
      const T sum = b ? z_row[j] + b[j] : z_row[j];
      if (keeps_sum) z_row[j] = sum;
      y_row[j] = detail::ActivationMath<A>::value(sum);
    });
  }
};

/// dz and its column sums in one pass: a team owns a block of columns, its threads walk the rows,
/// and their partial sums, one row of scratch each, are added in thread order.
template <class T, Activation A>
struct ActivationBiasBackward {
  const T* saved;
  T* dy;
  T* dbias;
  Size rows, cols, block;
  bool accumulate;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size first = team.league_rank() * block;
    const Size width = first + block < cols ? block : cols - first;
    const Size threads = team.team_size();
    T* const partial = Scratch<T>(team.team_scratch(0), threads * block).data();
    T* const mine = partial + team.team_rank() * block;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width), [=](Size j) { mine[j] = 0; });
    for (Size i = team.team_rank(); i < rows; i += threads) {
      const T* const s = saved + i * cols + first;
      T* const d = dy + i * cols + first;
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, width), [=](Size j) {
        const T dz = d[j] * detail::ActivationMath<A>::slope(s[j]);
        if (A != Activation::identity) d[j] = dz;
        mine[j] += dz;
      });
    }
    team.team_barrier();
    if (dbias == nullptr) return;
    T* const out = dbias + first;
    const bool add = accumulate;
    const Size stride = block;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, width), [=](Size j) {
      T sum = add ? out[j] : T(0);
      for (Size t = 0; t < threads; ++t) sum += partial[t * stride + j];
      out[j] = sum;
    });
  }
};

/// Columns of a team: a warp's width on a device; on a host a share for every thread, wide enough
/// for vectors and small enough for the partial sums to stay in the first cache.
Size column_block(Size cols) {
  if (!on_host) return 32;
  static const Size threads = ExecSpace().concurrency();
  return std::clamp<Size>((cols + threads - 1) / threads, std::min<Size>(cols, 64), 1024);
}

/// Calls f(std::integral_constant<Activation, a>).
template <class F>
void dispatch(Activation a, const F& f) {
  switch (a) {
    case Activation::identity:
      return f(std::integral_constant<Activation, Activation::identity>());
    case Activation::relu:
      return f(std::integral_constant<Activation, Activation::relu>());
    case Activation::tanh:
      return f(std::integral_constant<Activation, Activation::tanh>());
    case Activation::sigmoid:
      return f(std::integral_constant<Activation, Activation::sigmoid>());
    case Activation::gelu:
      return f(std::integral_constant<Activation, Activation::gelu>());
  }
}

/// Null for an empty View, which may still point somewhere: a layer without bias in a flat arena.
template <class T>
T* data_or_null(const Vector<T>& v) {
  return v.extent(0) == 0 ? nullptr : v.data();
}

}  // namespace

template <class T>
void bias_activation(Activation activation, const Matrix<T>& z, const Vector<const T>& bias,
                     const Matrix<T>& y) {
  const Size rows = z.extent(0), cols = z.extent(1);
  const bool nothing =
      activation == Activation::identity && bias.extent(0) == 0 && y.data() == z.data();
  if (rows == 0 || cols == 0 || nothing) return;
  const TeamPolicy policy = on_host ? TeamPolicy(rows, 1, 1) : TeamPolicy(rows, Kokkos::AUTO, 1);
  dispatch(activation, [&](auto a) {
    Kokkos::parallel_for(
        bias_activation_label, policy,
        BiasActivation<T, decltype(a)::value>{z.data(), data_or_null(bias), y.data(), cols});
  });
}

template <class T>
void activation_bias_backward(Activation activation, const Matrix<const T>& saved,
                              const Matrix<T>& dy, const Vector<T>& dbias, bool accumulate) {
  const Size rows = dy.extent(0), cols = dy.extent(1);
  if (cols == 0 || (dbias.extent(0) == 0 && activation == Activation::identity)) return;
  const Size block = column_block(cols);
  const int threads = on_host ? 1 : 8;
  const auto policy =
      TeamPolicy((cols + block - 1) / block, threads, on_host ? 1 : 32)
          .set_scratch_size(0, Kokkos::PerTeam(Scratch<T>::shmem_size(threads * block)));
  dispatch(activation, [&](auto a) {
    Kokkos::parallel_for(
        activation_bias_backward_label, policy,
        ActivationBiasBackward<T, decltype(a)::value>{saved.data(), dy.data(), data_or_null(dbias),
                                                      rows, cols, block, accumulate});
  });
}

template <class T>
void linear_forward(const Gemm<T>& gemm, Activation activation, const Matrix<const T>& x,
                    const Matrix<const T>& kernel, const Vector<const T>& bias, const Matrix<T>& z,
                    const Matrix<T>& y) {
  const Matrix<T>& sum = needs_preactivation(activation) ? z : y;
  gemm(Trans::no, Trans::no, 1, x, kernel, 0, sum);
  bias_activation<T>(activation, sum, bias, y);
}

template <class T>
void linear_backward(const Gemm<T>& gemm, Activation activation, const Matrix<const T>& x,
                     const Matrix<const T>& kernel, const Matrix<const T>& saved,
                     const Matrix<T>& dy, const Matrix<T>& dkernel, const Vector<T>& dbias,
                     const Matrix<T>& dx, bool accumulate) {
  activation_bias_backward<T>(activation, saved, dy, dbias, accumulate);
  gemm(Trans::yes, Trans::no, 1, x, dy, accumulate ? 1 : 0, dkernel);
  if (dx.data() != nullptr) gemm(Trans::no, Trans::yes, 1, dy, kernel, 0, dx);
}

#define TESSERA_INSTANTIATE(T)                                                                    \
  template void bias_activation<T>(Activation, const Matrix<T>&, const Vector<const T>&,          \
                                   const Matrix<T>&);                                             \
  template void activation_bias_backward<T>(Activation, const Matrix<const T>&, const Matrix<T>&, \
                                            const Vector<T>&, bool);                              \
  template void linear_forward<T>(const Gemm<T>&, Activation, const Matrix<const T>&,             \
                                  const Matrix<const T>&, const Vector<const T>&,                 \
                                  const Matrix<T>&, const Matrix<T>&);                            \
  template void linear_backward<T>(const Gemm<T>&, Activation, const Matrix<const T>&,            \
                                   const Matrix<const T>&, const Matrix<const T>&,                \
                                   const Matrix<T>&, const Matrix<T>&, const Vector<T>&,          \
                                   const Matrix<T>&, bool);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
