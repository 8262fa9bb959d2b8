// SPDX-License-Identifier: Apache-2.0
#include "measure/gemm_peak.hpp"

#include <algorithm>

#include <tessera/base/view.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/random/fill.hpp>

#include "measure/slowest.hpp"

namespace tessera::bench {
namespace {

template <class T>
double typed_gemm_peak(const Communicator& ranks, MatmulPrecision precision, Size n,
                       Size repetitions) {
  const Matrix<T> a("tessera::bench::a", n, n), b("tessera::bench::b", n, n),
      c("tessera::bench::c", n, n);
  fill_normal(a, key(1));
  fill_normal(b, key(2));
  const bool is_emulated = is_half_v<T> && half_products(dtype_of<T>()) == HalfProducts::emulated;
  const Gemm<T> gemm(precision, is_emulated ? MatmulScratch{n * n, n * n, n * n} : MatmulScratch{});
  const std::vector<double> seconds =
      repeat(ranks, 1, repetitions, [&] { gemm(Trans::no, Trans::no, a, b, 0, c); });
  const double best = slowest(ranks, {*std::min_element(seconds.begin(), seconds.end())}).front();
  return GemmShape{n, n, n}.flops() / best;
}

}  // namespace

GemmType gemm_type(const Config& config) {
  return {compute_type(config),
          has_native_tf32() ? config.model.matmul_precision : MatmulPrecision::strict};
}

double gemm_peak(const Communicator& ranks, const GemmType& type, Size gemm_size,
                 Size repetitions) {
  return with_compute_type(type.operands, [&](auto t) {
    return typed_gemm_peak<decltype(t)>(ranks, type.precision, gemm_size, repetitions);
  });
}

}  // namespace tessera::bench
