// SPDX-License-Identifier: Apache-2.0
#include "measure/machine_probe.hpp"

#include <tessera/base/for_each.hpp>

#include "measure/slowest.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

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
