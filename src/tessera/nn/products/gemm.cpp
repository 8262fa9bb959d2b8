// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <type_traits>

#include <KokkosBlas3_gemm.hpp>
#include <KokkosBlas_Host_tpl.hpp>
#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/region.hpp>
#include <tessera/nn/products/fixed_order.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/nn/products/library_product.hpp>
#include <tessera/nn/products/shared_product.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

struct MatrixShape {
  Size rows, cols;
};

template <class T>
MatrixShape shape_of(Trans trans, const Matrix<T>& m) {
  const Size rows = static_cast<Size>(m.extent(0)), cols = static_cast<Size>(m.extent(1));
  return trans == Trans::no ? MatrixShape{rows, cols} : MatrixShape{cols, rows};
}

std::string to_string(MatrixShape s) { return fmt::format("({}, {})", s.rows, s.cols); }

void check_shapes(MatrixShape a, MatrixShape b, MatrixShape c) {
  if (a.rows != c.rows || b.cols != c.cols || a.cols != b.rows)
    throw Error(ExitCode::usage, "gemm: shapes {} x {} -> {} do not fit", to_string(a),
                to_string(b), to_string(c));
}

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

/// Calls f(i, j) for the elements of a block. A block without gaps between rows is one row.
template <class T, class F>
void for_each_element(const std::string& label, const Matrix<T>& block, const F& f) {
  const Size rows = static_cast<Size>(block.extent(0)), cols = static_cast<Size>(block.extent(1));
  if (stride_of(block) == cols)
    for_each(
        label, rows * cols, KOKKOS_LAMBDA(Size j) { f(0, j); });
  else
    for_rows(
        label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
          const Size i = row.number;
          row.for_each(cols, [&](Size j) { f(i, j); });
        });
}

/// Returns the operand that the product takes: widened to float and rounded to TF32. Numbers of 16
/// bits have no more mantissa bits than that.
template <class T>
Matrix<const StateOf<T>> prepared(const Matrix<const T>& m, const Vector<StateOf<T>>& scratch) {
  if constexpr (std::is_same_v<T, double>) {
    return m;
  } else {
    const Matrix<float> copy = shaped_like(m, scratch);
    const T* const in = m.data();
    float* const out = copy.data();
    const Size stride = stride_of(m), cols = static_cast<Size>(m.extent(1));
    for_each_element(
        "tessera::gemm_operand"_label, m, KOKKOS_LAMBDA(Size i, Size j) {
          out[i * cols + j] = detail::widened(in[i * stride + j], true);
        });
    return copy;
  }
}

/// Multiplies with the library behind detail::multiply().
template <class T, class C>
void native_product(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                    const Matrix<const T>& b, StateOf<T> beta, const Matrix<C>& c,
                    MatmulPrecision precision, const GemmBatch& batch = {}) {
  detail::multiply(
      {trans_a, trans_b, static_cast<Size>(c.extent(0)), static_cast<Size>(c.extent(1)),
       shape_of(trans_a, a).cols, stride_of(a), stride_of(b), stride_of(c), beta, dtype_of<T>(),
       dtype_of<C>(), precision, batch},
      a.data(), b.data(), c.data());
}

/// Multiplies floats or doubles. On a host, the calling thread alone does so.
template <class T>
void strict_product(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                    const Matrix<const T>& b, T beta, const Matrix<T>& c) {
  const Size m = static_cast<Size>(c.extent(0)), n = static_cast<Size>(c.extent(1)),
             k = shape_of(trans_a, a).cols;
  const char ta[] = {static_cast<char>(trans_a), '\0'}, tb[] = {static_cast<char>(trans_b), '\0'};
  // Kokkos Kernels on GPUs adds parts of sums in no fixed order if there are few results: replicas
  // of a parameter would get different gradients. It also has a cuBLAS handle and workspace of its
  // own.
  if (detail::multiplies_faster(dtype_of<T>(), trans_b, m * n * k))
    return native_product(trans_a, trans_b, a, b, beta, c, MatmulPrecision::strict);
#ifdef KOKKOSKERNELS_ENABLE_TPL_BLAS
  // The BLAS of Kokkos Kernels without its regions for tools, which only one thread may open.
  // Row-major C = op(A) op(B) is column-major C^T = op(B)^T op(A)^T.
  if constexpr (on_host) {
    const auto number = [](Size size) { return static_cast<int>(size); };
    return KokkosBlas::Impl::HostBlas<T>::gemm(
        *tb, *ta, number(n), number(m), number(k), T(1), b.data(), number(stride_of(b)), a.data(),
        number(stride_of(a)), beta, c.data(), number(stride_of(c)));
  }
#endif
  KokkosBlas::gemm(ta, tb, T(1), a, b, beta, c);
}

/// c = beta c: a product without terms
template <class State, class C>
void scale(State beta, const Matrix<C>& c) {
  C* const out = c.data();
  const Size stride = stride_of(c);
  for_each_element(
      "tessera::gemm_without_terms"_label, c, KOKKOS_LAMBDA(Size i, Size j) {
        C& to = out[i * stride + j];
        to = beta == 0 ? State(0) : beta * static_cast<State>(to);
      });
}

/// c = round(sums + beta c), with beta 0 or 1
template <class T>
void round_sums(const Matrix<StateOf<T>>& sums, StateOf<T> beta, const Matrix<T>& c) {
  const StateOf<T>* const in = sums.data();
  T* const out = c.data();
  const Size stride = stride_of(c), cols = static_cast<Size>(c.extent(1));
  for_each_element(
      "tessera::round_sum"_label, c, KOKKOS_LAMBDA(Size i, Size j) {
        const StateOf<T> sum = in[i * cols + j];
        T& to = out[i * stride + j];
        to = beta == 0 ? sum : sum + beta * static_cast<StateOf<T>>(to);
      });
}

constexpr bool is_matrix_product(Size m, Size n, Size k) { return m > 1 && n > 1 && k > 1; }

template <class T>
detail::ProductOperand<T> operand(Trans trans, const Matrix<T>& of) {
  const detail::ProductOperand<T> straight{of.data(), stride_of(of), 1};
  return trans == Trans::no ? straight : straight.transposed();
}

}  // namespace

template <class T>
Gemm<T>::Gemm(MatmulPrecision precision, const MatmulScratch& scratch, HalfProducts products,
              bool fixed_order)
    : precision_(precision),
      products_(products),
      fixed_order_(fixed_order),
      left_(allocate_vector<Sum>("tessera::gemm_scratch_a", scratch.left)),
      right_(allocate_vector<Sum>("tessera::gemm_scratch_b", scratch.right)),
      result_(allocate_vector<Sum>("tessera::gemm_scratch_c", scratch.result)),
      nodes_(allocate_vector<Sum>("tessera::gemm_nodes", scratch.nodes)) {
  if (precision == MatmulPrecision::tf32 && !std::is_same_v<T, float>)
    throw ConfigError("model.matmul_precision", name_of(precision), "needs dtype float32");
}

template <class T>
bool Gemm<T>::is_reentrant() const {
#ifdef KOKKOSKERNELS_ENABLE_TPL_BLAS
  return left_.size() + right_.size() + result_.size() + nodes_.size() == 0;
#else
  return false;  // products are kernels of Kokkos
#endif
}

template <class T>
template <class C>
requires std::is_same_v<C, T> || std::is_same_v<C, StateOf<T>>
void Gemm<T>::operator()(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                         const Matrix<const T>& b, Sum beta, const Matrix<C>& c,
                         const SumBlocks& sums) const {
  multiply_batch(trans_a, trans_b, a, b, beta, c, {}, sums);
}

template <class T>
template <class C>
void Gemm<T>::multiply_batch(Trans trans_a, Trans trans_b, const Matrix<const T>& a,
                             const Matrix<const T>& b, Sum beta, const Matrix<C>& c,
                             const GemmBatch& batch, const SumBlocks& sums) const {
  const Region region(products_region);
  const MatrixShape op_a = shape_of(trans_a, a), op_b = shape_of(trans_b, b),
                    out = shape_of(Trans::no, c);
  check_shapes(op_a, op_b, out);
  const bool is_tf32 = precision_ == MatmulPrecision::tf32;
  const auto for_batch = [&](const auto& multiply) {
    for (Size i = 0; i < batch.count; ++i)
      multiply(moved(a, i * batch.a), moved(b, i * batch.b), moved(c, i * batch.c));
  };
  if (fixed_order_) {
    static const std::vector<detail::ChainKernels<Sum>> kernels = detail::chain_kernels<T>();
    constexpr Size few = 5000;  // tiles of AMX then take longer than vectors
    const bool is_small = kernels[0].takes_pairs && out.rows * out.cols * op_a.cols < few;
    return for_batch([&](const auto& x, const auto& y, const auto& z) {
      detail::multiply_in_order<T, C>(
          {out.rows, out.cols, op_a.cols, operand(trans_a, x), operand(trans_b, y),
           operand(Trans::no, z), beta, is_tf32, sums},
          kernels[is_small ? 1 : 0], left_, right_, result_);
    });
  }
  if (batch.count == 0 || out.rows == 0 || out.cols == 0) return;
  if (op_a.cols == 0)
    return for_batch([&](const auto&, const auto&, const auto& z) { scale(beta, z); });
  const bool rounds = is_tf32 && is_matrix_product(out.rows, out.cols, op_a.cols);
  const bool is_native = is_half_v<T> ? products_ != HalfProducts::emulated : has_native_tf32();
  if (is_native && !on_host)
    return native_product(trans_a, trans_b, a, b, beta, c,
                          rounds ? precision_ : MatmulPrecision::strict, batch);
  const auto product = [&](Sum times, const auto& x, const auto& y, const auto& z) {
    if constexpr (!is_half_v<T>)
      if (!is_native) return strict_product(trans_a, trans_b, x, y, times, z);
    native_product(trans_a, trans_b, x, y, times, z, precision_);
  };
  if (is_native || (!is_half_v<T> && !rounds))
    return detail::SharedProduct(out.rows, out.cols, op_a.cols, batch, stride_of(c),
                                 std::is_same_v<C, Sum>)
        .multiply(trans_a, trans_b, a, b, beta, c, product);
  for_batch([&](const auto& x, const auto& y, const auto& z) {
    const Matrix<const Sum> left = prepared<T>(x, left_), right = prepared<T>(y, right_);
    const detail::SharedProduct one(out.rows, out.cols, op_a.cols, {}, out.cols);
    const auto multiply = [&](Sum times, const Matrix<Sum>& to) {
      one.multiply(trans_a, trans_b, left, right, times, to,
                   [&](Sum factor, const auto& l, const auto& r, const auto& t) {
                     strict_product(trans_a, trans_b, l, r, factor, t);
                   });
    };
    if constexpr (std::is_same_v<C, Sum>) {
      multiply(beta, z);
    } else {
      const Matrix<Sum> sums_of_c = shaped_like(z, result_);
      multiply(0, sums_of_c);
      round_sums(sums_of_c, beta, z);
    }
  });
}

#define TESSERA_INSTANTIATE(T, C)                                                                 \
  template void Gemm<T>::operator()(Trans, Trans, const Matrix<const T>&, const Matrix<const T>&, \
                                    StateOf<T>, const Matrix<C>&, const SumBlocks&) const;        \
  template void Gemm<T>::multiply_batch(Trans, Trans, const Matrix<const T>&,                     \
                                        const Matrix<const T>&, StateOf<T>, const Matrix<C>&,     \
                                        const GemmBatch&, const SumBlocks&) const;
TESSERA_FOR_PRODUCT_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE
TESSERA_INSTANTIATE_CLASS(Gemm);

}  // namespace tessera
