// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <KokkosBlas3_gemm.hpp>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/region.hpp>
#include <tessera/nn/gemm.hpp>

namespace tessera {
namespace {

// Made once: a launch then needs no memory for its label.
const std::string round_to_tf32_label = "tessera::round_to_tf32";

struct MatrixShape {
  Size rows, cols;
};

template <class T>
MatrixShape shape_of(Trans trans, const Matrix<T>& m) {
  const Size rows = static_cast<Size>(m.extent(0)), cols = static_cast<Size>(m.extent(1));
  return trans == Trans::no ? MatrixShape{rows, cols} : MatrixShape{cols, rows};
}

std::string to_string(MatrixShape s) {
  return "(" + std::to_string(s.rows) + ", " + std::to_string(s.cols) + ")";
}

template <class T>
Matrix<const T> rounded(const Matrix<const T>& m, const Vector<T>& scratch) {
  if constexpr (std::is_same_v<T, float>) {
    const Size n = static_cast<Size>(m.span());
    if (n > static_cast<Size>(scratch.extent(0))) {
      throw Error(ExitCode::usage, "gemm: an operand of " + std::to_string(n) +
                                       " elements needs more scratch memory than " +
                                       std::to_string(scratch.extent(0)));
    }
    round_to_tf32(Vector<const float>(m.data(), n), Vector<float>(scratch.data(), n));
    return Matrix<const float>(scratch.data(), m.extent(0), m.extent(1));
  } else {
    return m;
  }
}

}  // namespace

template <class T>
Gemm<T>::Gemm(MatmulPrecision precision, Size scratch_a, Size scratch_b) : precision_(precision) {
  if (precision == MatmulPrecision::strict) return;
  if (!std::is_same_v<T, float>) {
    throw ConfigError("model.matmul_precision", name_of(precision), "needs dtype float32");
  }
  scratch_a_ = allocate_vector<T>("tessera::gemm_scratch_a", scratch_a);
  scratch_b_ = allocate_vector<T>("tessera::gemm_scratch_b", scratch_b);
}

template <class T>
void Gemm<T>::operator()(Trans trans_a, Trans trans_b, T alpha, const Matrix<const T>& a,
                         const Matrix<const T>& b, T beta, const Matrix<T>& c) const {
  const Region region("tessera::gemm");
  const MatrixShape op_a = shape_of(trans_a, a), op_b = shape_of(trans_b, b),
                    out = shape_of(Trans::no, c);
  if (op_a.rows != out.rows || op_b.cols != out.cols || op_a.cols != op_b.rows) {
    throw Error(ExitCode::usage, "gemm: shapes " + to_string(op_a) + " x " + to_string(op_b) +
                                     " -> " + to_string(out) + " do not fit");
  }
  const char ta[] = {static_cast<char>(trans_a), '\0'}, tb[] = {static_cast<char>(trans_b), '\0'};
  const bool product = out.rows > 1 && out.cols > 1 && op_a.cols > 1;
  if (precision_ == MatmulPrecision::tf32 && product) {
    KokkosBlas::gemm(ta, tb, alpha, rounded<T>(a, scratch_a_), rounded<T>(b, scratch_b_), beta, c);
  } else {
    KokkosBlas::gemm(ta, tb, alpha, a, b, beta, c);
  }
}

void round_to_tf32(const Vector<const float>& in, const Vector<float>& out) {
  const float* const from = in.data();
  float* const to = out.data();
  for_each(
      round_to_tf32_label, in.extent(0), KOKKOS_LAMBDA(Size i) {
        // As integers the bits grow with the magnitude: half a unit added, 13 low bits cut.
        std::uint32_t bits;
        std::memcpy(&bits, from + i, sizeof bits);
        const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
        bits = finite ? (bits + 0x1000u) & ~0x1fffu : bits;
        std::memcpy(to + i, &bits, sizeof bits);
      });
}

template class Gemm<float>;
template class Gemm<double>;

}  // namespace tessera
