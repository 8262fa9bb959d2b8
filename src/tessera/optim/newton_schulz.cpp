// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/region.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/optim/newton_schulz.hpp>

namespace tessera {
namespace {

constexpr int newton_schulz_steps = 5;
constexpr double coefficient_a = 3.4445, coefficient_b = -4.7750, coefficient_c = 2.0315;
constexpr double least_norm = 1e-7;

}  // namespace

std::vector<GemmShape> newton_schulz_products(Size rows, Size cols) {
  const Size side = std::min(rows, cols), other = std::max(rows, cols);
  return {{side, side, other, newton_schulz_steps},
          {side, side, side, newton_schulz_steps},
          {rows, cols, side, newton_schulz_steps}};
}

double newton_schulz_flops(const Shape& matrix) {
  double flops = 0;
  for (const GemmShape& product : newton_schulz_products(matrix[0], matrix[1]))
    flops += product.flops();
  return flops;
}

void NewtonSchulzScratch::raise_to(Size rows, Size cols, bool fixed_order) {
  const auto raise = [](Size& most, Size elements) { most = std::max(most, elements); };
  const Size side = std::min(rows, cols);
  raise(matrix, rows * cols), raise(gram, side * side);
  if (!fixed_order) return;
  for (const GemmShape& product : newton_schulz_products(rows, cols)) {
    const MatmulScratch of = fixed_order_scratch(product.m, product.n, product.k, false, 1);
    raise(products.right, of.right), raise(products.result, of.result);
  }
}

template <class T>
NewtonSchulz<T>::NewtonSchulz(const NewtonSchulzScratch& scratch, bool fixed_order)
    : gemm_(MatmulPrecision::strict, scratch.products, half_products(dtype_of<T>()), fixed_order) {
  const std::string label = "tessera::orthogonalization";
  matrix_ = allocate_vector<T>(label, scratch.matrix);
  next_ = allocate_vector<T>(label, scratch.matrix);
  gram_ = allocate_vector<T>(label, scratch.gram);
  polynomial_ = allocate_vector<T>(label, scratch.gram);
  squares_ = allocate_vector<double>(label, scratch.matrix > 0 ? 1 : 0);
}

template <class T>
Matrix<T> NewtonSchulz<T>::matrix(Size rows, Size cols) const {
  return alias_matrix(matrix_.data(), rows, cols);
}

template <class T>
void NewtonSchulz<T>::orthogonalize(const Matrix<T>& matrix) const {
  const Region region("tessera::orthogonalize");
  const Size rows = static_cast<Size>(matrix.extent(0)), cols = static_cast<Size>(matrix.extent(1)),
             side = std::min(rows, cols), elements = rows * cols;
  const bool is_wide = rows <= cols;
  const Matrix<T> next = alias_matrix(next_.data(), rows, cols),
                  gram = alias_matrix(gram_.data(), side, side),
                  polynomial = alias_matrix(polynomial_.data(), side, side);
  T *const x = matrix.data(), *const y = next.data();
  const double* const squares = squares_.data();
  const double least = least_norm;
  sum_of_squares<T>(Vector<const T>(x, static_cast<std::size_t>(elements)), squares_);
  for_each(
      "tessera::normalize"_label, elements, KOKKOS_LAMBDA(Size i) {
        using std::sqrt;
        const double norm = sqrt(squares[0]);
        x[i] = y[i] = static_cast<T>(x[i] / (norm > least ? norm : least));
      });
  // Products have no factor, so c is that of the sum: X <- c (a/c X + (b/c G + G G) X).
  constexpr T a = coefficient_a / coefficient_c, b = coefficient_b / coefficient_c,
              c = coefficient_c;
  for (int step = 0; step < newton_schulz_steps; ++step) {
    const Matrix<const T> from = matrix;
    gemm_(is_wide ? Trans::no : Trans::yes, is_wide ? Trans::yes : Trans::no, from, from, T(0),
          gram);
    Kokkos::deep_copy(ExecSpace(), polynomial, gram);
    gemm_(Trans::no, Trans::no, Matrix<const T>(gram), Matrix<const T>(gram), b, polynomial);
    if (is_wide)
      gemm_(Trans::no, Trans::no, Matrix<const T>(polynomial), from, a, next);
    else
      gemm_(Trans::no, Trans::no, from, Matrix<const T>(polynomial), a, next);
    for_each(
        "tessera::next_matrix"_label, elements, KOKKOS_LAMBDA(Size i) { x[i] = y[i] = c * y[i]; });
  }
}

template class NewtonSchulz<float>;
template class NewtonSchulz<double>;

}  // namespace tessera
