// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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
constexpr Size narrow_side = 128, narrow_rows = 65536, square_side = 4096;
#else
constexpr Size narrow_side = 32, narrow_rows = 512, square_side = 384;
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

/// Returns the shortest side of products that reach half of the rate of large ones, from the three
/// products of a linear layer with many rows and few columns. The operands are in the cache.
double measure_half_rate_side(const Communicator& ranks, const SquareProduct& square,
                              double kernel) {
  const Matrix<float> a = zeros(narrow_rows, narrow_side), b = zeros(narrow_side, narrow_side),
                      c = zeros(narrow_rows, narrow_side);
  const Gemm<float> gemm;
  std::vector<double> sides;
  for (int i = 0; i < 20; ++i) {
    const double narrow = typical_seconds(ranks, 5, [&] {
      gemm(Trans::no, Trans::no, a, b, 0, c);
      gemm(Trans::no, Trans::yes, c, b, 0, a);
      gemm(Trans::yes, Trans::no, a, c, 0, b);
    });
    const double at_full_rate =
        square.seconds_per_flop(ranks) * GemmShape{narrow_rows, narrow_side, narrow_side}.flops();
    sides.push_back(static_cast<double>(narrow_side) * ((narrow / 3 - kernel) / at_full_rate - 1));
  }
  return std::max(0.0, median(sides));
}

/// Returns the further seconds of each byte of small products of blocks of wider matrices, which do
/// not fit into the first caches.
double measure_block_byte_seconds(const Communicator& ranks, const SquareProduct& square,
                                  const Machine& machine) {
  constexpr Size n = 32;  // blocks along each side
  const Size rows = n * narrow_side, cols = rows + narrow_side;
  const Matrix<float> a = zeros(rows, cols), b = zeros(rows, cols), c = zeros(rows, cols);
  const Gemm<float> gemm;
  const auto block = [&](const Matrix<float>& of, Size i) {
    return block_of(of, {i % n * narrow_side, narrow_side}, {i / n * narrow_side, narrow_side});
  };
  const GemmShape product{narrow_side, narrow_side, narrow_side};
  std::vector<double> further;
  for (int i = 0; i < 5; ++i) {
    const double products = typical_seconds(ranks, 3, [&] {
      for (Size k = 0; k < n * n; ++k) {
        const Matrix<float> x = block(a, k), y = block(b, k), z = block(c, k);
        gemm(Trans::no, Trans::no, x, y, 0, z);
        gemm(Trans::no, Trans::yes, z, y, 0, x);
        gemm(Trans::yes, Trans::no, x, z, 0, y);
      }
    });
    const double arithmetic = (1 + machine.half_rate_side / narrow_side) *
                              square.seconds_per_flop(ranks) * product.flops();
    further.push_back(products / (3 * n * n) - machine.kernel_seconds - arithmetic);
  }
  return std::max(0.0, median(further) / static_cast<double>(product.elements() * sizeof(float)));
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
  const SquareProduct square;
  machine.half_rate_side = measure_half_rate_side(ranks, square, machine.kernel_seconds);
  machine.block_byte_seconds = measure_block_byte_seconds(ranks, square, machine);
  machine.product_overlap = measure_product_overlap(ranks);
}

}  // namespace tessera::bench
