// SPDX-License-Identifier: Apache-2.0
#include "micro/sgemm.hpp"

#include <dlfcn.h>

namespace tessera::bench {
namespace {

using Sgemm = void(const char*, const char*, const int*, const int*, const int*, const float*,
                   const float*, const int*, const float*, const int*, const float*, float*,
                   const int*);

}  // namespace

/// Row-major C = op(A) op(B) is column-major C^T = op(B)^T op(A)^T.
BlasProduct find_sgemm() {
  if (!Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible) return {};
  const auto sgemm = reinterpret_cast<Sgemm*>(dlsym(RTLD_DEFAULT, "sgemm_"));
  if (sgemm == nullptr) return {};
  return [sgemm](Trans trans_a, Trans trans_b, const Matrix<const float>& a,
                 const Matrix<const float>& b, const Matrix<float>& c) {
    const char op_a[] = {static_cast<char>(trans_a), '\0'},
               op_b[] = {static_cast<char>(trans_b), '\0'};
    const int rows = static_cast<int>(c.extent(1)), cols = static_cast<int>(c.extent(0)),
              sums = static_cast<int>(a.extent(trans_a == Trans::no ? 1 : 0)),
              lda = static_cast<int>(a.extent(1)), ldb = static_cast<int>(b.extent(1));
    const float one = 1, zero = 0;
    sgemm(op_b, op_a, &rows, &cols, &sums, &one, b.data(), &ldb, a.data(), &lda, &zero, c.data(),
          &rows);
  };
}

}  // namespace tessera::bench
