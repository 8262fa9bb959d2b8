// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <KokkosBlas2_gemv.hpp>
#include <KokkosBlas3_gemm.hpp>
#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/region.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/nn/products/half_product.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string round_to_tf32_label = "tessera::round_to_tf32";
const std::string widen_label = "tessera::widen";
const std::string round_sum_label = "tessera::round_sum";

struct MatrixShape {
  Size rows, cols;
};

template <class T>
MatrixShape shape_of(Trans trans, const Matrix<T>& m) {
  const Size rows = static_cast<Size>(m.extent(0)), cols = static_cast<Size>(m.extent(1));
  return trans == Trans::no ? MatrixShape{rows, cols} : MatrixShape{cols, rows};
}

std::string to_string(MatrixShape s) { return fmt::format("({}, {})", s.rows, s.cols); }

/// Returns the elements from one row to the next.
template <class T>
Size stride_of(const Matrix<T>& m) {
  return static_cast<Size>(m.stride_0());
}

/// Returns `scratch` in the shape of `m`.
template <class T, class Of>
Matrix<T> shaped_like(const Matrix<Of>& m, const Vector<T>& scratch) {
  const Size n = static_cast<Size>(m.size());
  if (n > static_cast<Size>(scratch.extent(0)))
    throw Error(ExitCode::usage, "gemm: {} elements need more scratch memory than {}", n,
                scratch.extent(0));
  return alias_matrix(scratch.data(), static_cast<Size>(m.extent(0)),
                      static_cast<Size>(m.extent(1)));
}

KOKKOS_INLINE_FUNCTION float to_tf32(float x) {
  // The bits, as an integer, grow with the magnitude: adds half a unit and clears the 13 low bits.
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  bits = finite ? (bits + 0x1000u) & ~0x1fffu : bits;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

template <class F>
struct ElementsOfRow {
  F f;
  Size cols;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank();
    const F& each = f;
    detail::for_each_lane(Kokkos::TeamVectorRange(team, cols), cols, [&](Size j) { each(i, j); });
  }
};

/// Calls f(i, j) for the elements of a block. A block without gaps between rows is one row.
template <class T, class F>
void for_each_element(const std::string& label, const Matrix<T>& block, const F& f) {
  const Size rows = static_cast<Size>(block.extent(0)), cols = static_cast<Size>(block.extent(1));
  if (stride_of(block) == cols)
    for_each(
        label, rows * cols, KOKKOS_LAMBDA(Size j) { f(0, j); });
  else
    for_each_row(label, rows, cols, ElementsOfRow<F>{f, cols});
}

/// Returns the operand that the product takes: rounded to TF32, or widened to float.
template <class T>
Matrix<const StateOf<T>> prepared(const Matrix<const T>& m, const Vector<StateOf<T>>& scratch) {
  if constexpr (std::is_same_v<T, double>) {
    return m;
  } else {
    const Matrix<float> copy = shaped_like(m, scratch);
    const T* const in = m.data();
    float* const out = copy.data();
    const Size stride = stride_of(m), cols = static_cast<Size>(m.extent(1));
    if constexpr (is_half_v<T>)
      for_each_element(
          widen_label, m, KOKKOS_LAMBDA(Size i, Size j) {
            out[i * cols + j] = static_cast<float>(in[i * stride + j]);
          });
    else
      for_each_element(
          round_to_tf32_label, m,
          KOKKOS_LAMBDA(Size i, Size j) { out[i * cols + j] = to_tf32(in[i * stride + j]); });
    return copy;
  }
}

/// Multiplies with the library behind detail::multiply().
template <class T, class C>
void native_product(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                    const Matrix<const T>& b, StateOf<T> beta, const Matrix<C>& c,
                    MatmulPrecision precision) {
  detail::multiply({trans_a, trans_b, static_cast<Size>(c.extent(0)),
                    static_cast<Size>(c.extent(1)), shape_of(trans_a, a).cols, stride_of(a),
                    stride_of(b), stride_of(c), beta, dtype_of<T>(), dtype_of<C>(), precision},
                   a.data(), b.data(), c.data());
}

template <class T>
void blas_product(Trans trans_a, Trans trans_b, const Matrix<const T>& a, const Matrix<const T>& b,
                  T beta, const Matrix<T>& c) {
  // For few results, Kokkos Kernels on GPUs adds parts of the sums in no fixed order. Replicas of a
  // parameter would then get different gradients.
  const bool is_few = c.size() > 0 && c.size() < 100 && a.extent(0) > 0;
  if (has_native_tf32() && trans_a == Trans::yes && trans_b == Trans::no && is_few)
    return native_product(trans_a, trans_b, a, b, beta, c, MatmulPrecision::strict);
  const char ta[] = {static_cast<char>(trans_a), '\0'}, tb[] = {static_cast<char>(trans_b), '\0'};
  const bool is_column = trans_a == Trans::no && trans_b == Trans::no && c.extent(1) == 1;
  // Kokkos Kernels ignores the stride of an operand with one column.
  if (is_column && a.extent(1) > 0 && (stride_of(b) > 1 || stride_of(c) > 1))
    KokkosBlas::gemv(ta, T(1), a, Kokkos::subview(b, Kokkos::ALL, 0), beta,
                     Kokkos::subview(c, Kokkos::ALL, 0));
  else
    KokkosBlas::gemm(ta, tb, T(1), a, b, beta, c);
}

/// c = round(sums + beta c)
template <class T>
void round_sums(const Matrix<float>& sums, float beta, const Matrix<T>& c) {
  const float* const in = sums.data();
  T* const out = c.data();
  const Size stride = stride_of(c), cols = static_cast<Size>(c.extent(1));
  for_each_element(
      round_sum_label, c, KOKKOS_LAMBDA(Size i, Size j) {
        const float sum = in[i * cols + j];
        T& to = out[i * stride + j];
        to = beta == 0 ? sum : sum + beta * static_cast<float>(to);
      });
}

}  // namespace

template <class T>
Gemm<T>::Gemm(MatmulPrecision precision, const MatmulScratch& scratch, HalfProducts products)
    : precision_(precision),
      products_(products),
      left_(allocate_vector<Sum>("tessera::gemm_scratch_a", scratch.left)),
      right_(allocate_vector<Sum>("tessera::gemm_scratch_b", scratch.right)),
      result_(allocate_vector<Sum>("tessera::gemm_scratch_c", scratch.result)) {
  if (precision == MatmulPrecision::tf32 && !std::is_same_v<T, float>)
    throw ConfigError("model.matmul_precision", name_of(precision), "needs dtype float32");
}

template <class T>
template <class C>
void Gemm<T>::multiply(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                       const Matrix<const T>& b, Sum beta, const Matrix<C>& c) const {
  const Region region("tessera::gemm");
  const MatrixShape op_a = shape_of(trans_a, a), op_b = shape_of(trans_b, b),
                    out = shape_of(Trans::no, c);
  if (op_a.rows != out.rows || op_b.cols != out.cols || op_a.cols != op_b.rows) {
    throw Error(ExitCode::usage, "gemm: shapes {} x {} -> {} do not fit", to_string(op_a),
                to_string(op_b), to_string(out));
  }
  if constexpr (!is_half_v<T>) {
    const bool is_product = out.rows > 1 && out.cols > 1 && op_a.cols > 1;
    if (precision_ == MatmulPrecision::tf32 && is_product) {
      if (has_native_tf32()) return native_product(trans_a, trans_b, a, b, beta, c, precision_);
      blas_product(trans_a, trans_b, prepared<T>(a, left_), prepared<T>(b, right_), beta, c);
    } else {
      blas_product(trans_a, trans_b, a, b, beta, c);
    }
  } else {
    if (out.rows == 0 || out.cols == 0) return;
    if (products_ != HalfProducts::emulated && op_a.cols > 0)
      return native_product(trans_a, trans_b, a, b, beta, c, precision_);
    if constexpr (std::is_same_v<C, Sum>) {
      blas_product(trans_a, trans_b, prepared<T>(a, left_), prepared<T>(b, right_), beta, c);
    } else {
      const Matrix<Sum> sums = shaped_like(c, result_);
      blas_product(trans_a, trans_b, prepared<T>(a, left_), prepared<T>(b, right_), Sum(0), sums);
      round_sums(sums, beta, c);
    }
  }
}

#define TESSERA_INSTANTIATE(T, C)                                                               \
  template void Gemm<T>::multiply(Trans, Trans, const Matrix<const T>&, const Matrix<const T>&, \
                                  StateOf<T>, const Matrix<C>&) const;
TESSERA_INSTANTIATE(float, float)
TESSERA_INSTANTIATE(double, double)
TESSERA_INSTANTIATE(BFloat16, BFloat16)
TESSERA_INSTANTIATE(BFloat16, float)
TESSERA_INSTANTIATE(Float16, Float16)
TESSERA_INSTANTIATE(Float16, float)
#undef TESSERA_INSTANTIATE
TESSERA_INSTANTIATE_CLASS(Gemm);

}  // namespace tessera
