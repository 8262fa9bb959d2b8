// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/products/gemm.hpp>

#include "measure/machine_parts.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

/// Allocates as an engine does: huge pages shorten the access to rows that are far apart.
Matrix<float> zeros(Size rows, Size cols) {
  const auto matrix = allocate_matrix<float>("tessera::bench::operand", rows, cols);
  Kokkos::deep_copy(matrix, 0);
  return matrix;
}

#ifdef KOKKOS_ENABLE_CUDA
constexpr Size fewest_rows = 64, long_side = 4096, square_side = 4096;
#else
constexpr Size fewest_rows = 2, long_side = 512, square_side = 384;
#endif

/// Square products, measured in turn with other products: a shared machine changes its speed.
class SquareProduct {
 public:
  double seconds_per_flop(const Communicator& ranks) const {
    return typical_seconds(ranks, 3,
                           [&] { gemm_(Trans::no, Trans::no, factor_, factor_, 0, to_); }) /
           GemmShape{square_side, square_side, square_side}.flops();
  }

 private:
  Matrix<float> factor_ = zeros(square_side, square_side), to_ = zeros(square_side, square_side);
  Gemm<float> gemm_{};
};

/// Returns the seconds for each FLOP of the three products of a linear layer, whose operands are in
/// a cache.
double seconds_per_flop_of_layer(const Communicator& ranks, const GemmShape& forward,
                                 double kernel) {
  const Matrix<float> x = zeros(forward.m, forward.k), w = zeros(forward.k, forward.n),
                      y = zeros(forward.m, forward.n);
  const Gemm<float> gemm;
  const double seconds = typical_seconds(ranks, 5, [&] {
    gemm(Trans::no, Trans::no, x, w, 0, y);
    gemm(Trans::no, Trans::yes, y, w, 0, x);
    gemm(Trans::yes, Trans::no, x, y, 0, w);
  });
  return std::max(0.0, seconds / 3 - kernel) / forward.flops();
}

/// Returns the part of the rate of square products that others reach. Layers with few rows and
/// layers with few columns have about the same mean of their sides, and count alike.
std::map<Size, double> measure_side_efficiency(const Communicator& ranks,
                                               const SquareProduct& square, double kernel) {
  std::map<Size, double> efficiency;
  for (Size few = fewest_rows; few < long_side; few *= 2) {
    const GemmShape flat{few, long_side, long_side}, narrow{long_side, 2 * few, 2 * few};
    std::vector<double> parts;
    for (int i = 0; i < 5; ++i) {
      const double of_flat = seconds_per_flop_of_layer(ranks, flat, kernel),
                   of_narrow = seconds_per_flop_of_layer(ranks, narrow, kernel);
      parts.push_back(2 * square.seconds_per_flop(ranks) / (of_flat + of_narrow));
    }
    efficiency[(flat.side() + narrow.side()) / 2] = std::min(1.0, median(parts));
  }
  return efficiency;
}

/// Returns the part of the shorter of arithmetic and memory traffic that the other hides: products
/// with several weights in turn, which are read from memory, take longer than those with one weight
/// in a cache.
double measure_product_overlap(const Communicator& ranks) {
  constexpr Size weights = 16;
#ifdef KOKKOS_ENABLE_CUDA
  const Size n = 2048, rows = 128;  // 16 MiB
#else
  const Size n = 512, rows = 32;  // 1 MiB, as in small networks
#endif
  const Matrix<float> in = zeros(rows, n), out = zeros(rows, n);
  std::vector<Matrix<float>> all;
  for (Size w = 0; w < weights; ++w) all.push_back(zeros(n, n));
  const Gemm<float> gemm;
  const auto seconds_of_product = [&](Size distinct) {
    return typical_seconds(ranks, 3,
                           [&] {
                             for (Size w = 0; w < weights; ++w)
                               gemm(Trans::no, Trans::no, in, all[w % distinct], 0, out);
                           }) /
           weights;
  };
  std::vector<double> overlaps;
  for (int i = 0; i < 5; ++i) {
    const double cached = seconds_of_product(1), read = seconds_of_product(weights);
    const double traffic =
        static_cast<double>(n * n) * sizeof(float) / memory_rate(ranks, weights * n * n / 2);
    overlaps.push_back(1 - (read - cached) / std::min(cached, traffic));
  }
  return std::clamp(median(overlaps), 0.0, 1.0);
}

}  // namespace

void measure_products(const Communicator& ranks, Machine& machine) {
  machine.side_efficiency = measure_side_efficiency(ranks, SquareProduct(), machine.kernel_seconds);
  machine.product_overlap = measure_product_overlap(ranks);
}

}  // namespace tessera::bench
