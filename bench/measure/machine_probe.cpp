// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/random/fill.hpp>

#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

template <class T>
double typed_gemm_peak(const Communicator& ranks, MatmulPrecision precision, Size n,
                       Size repetitions) {
  const auto a = allocate_matrix<T>("tessera::bench::a", n, n),
             b = allocate_matrix<T>("tessera::bench::b", n, n),
             c = allocate_matrix<T>("tessera::bench::c", n, n);
  fill_normal(a, key(1));
  fill_normal(b, key(2));
  const bool is_emulated = is_half_v<T> && half_products(dtype_of<T>()) == HalfProducts::emulated;
  const Gemm<T> gemm(precision, is_emulated ? MatmulScratch{n * n, n * n, n * n} : MatmulScratch{});
  const std::vector<double> seconds =
      repeat(ranks, 1, repetitions, [&] { gemm(Trans::no, Trans::no, a, b, 0, c); });
  const double best = slowest(ranks, {*std::min_element(seconds.begin(), seconds.end())}).front();
  return GemmShape{n, n, n}.flops() / best;
}

constexpr Size width = 64, products = 16;
constexpr Size elements = Size{1} << 21;  // 16 MiB of both Views
constexpr Size repetitions = 5;

/// c += a b, one row per iteration. The matrices fit into the first cache, so that only the core
/// counts.
void multiply(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c) {
  for_each(
      "tessera::bench::probe_product", width,
      KOKKOS_LAMBDA(Size i) {
        for (Size k = 0; k < width; ++k)
          for (Size j = 0; j < width; ++j) c(i, j) += a(i, k) * b(k, j);
      },
      width * width * width);
}

void sweep(const Vector<float>& from, const Vector<float>& to) {
  for_each(
      "tessera::bench::probe_memory", elements,
      KOKKOS_LAMBDA(Size i) { to(i) = 0.5F * to(i) + from(i); });
}

}  // namespace

std::vector<double> repeat(const Communicator& ranks, Size warm_up, Size times,
                           const std::function<void()>& work) {
  for (Size i = 0; i < warm_up; ++i) work();
  Kokkos::fence();
  std::vector<double> seconds;
  for (Size i = 0; i < times; ++i) {
    ranks.barrier();
    const Timer timer;
    work();
    Kokkos::fence();
    seconds.push_back(timer.seconds());
  }
  return seconds;
}

std::vector<double> slowest(const Communicator& ranks, const std::vector<double>& mine) {
  const Kokkos::View<double*, Kokkos::HostSpace> seconds("tessera::bench::seconds", mine.size());
  std::copy(mine.begin(), mine.end(), seconds.data());
  ranks.all_reduce(seconds, ReduceOp::max);
  return {seconds.data(), seconds.data() + seconds.extent(0)};
}

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

MachineProbe::MachineProbe()
    : a_("tessera::bench::probe_a", width, width),
      b_("tessera::bench::probe_b", width, width),
      c_("tessera::bench::probe_c", width, width),
      from_("tessera::bench::probe_from", elements),
      to_("tessera::bench::probe_to", elements) {
  Kokkos::deep_copy(a_, 0.01F);
  Kokkos::deep_copy(b_, 0.01F);
  Kokkos::deep_copy(from_, 1.0F);
}

MachineSpeed MachineProbe::measure(const Communicator& ranks) const {
  const auto typical = [&](const auto& work) {
    return median(slowest(ranks, repeat(ranks, 1, repetitions, work)));
  };
  return {typical([&] {
            for (Size i = 0; i < products; ++i) multiply(a_, b_, c_);
          }),
          typical([&] { sweep(from_, to_); })};
}

}  // namespace tessera::bench
