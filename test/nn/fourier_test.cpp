// SPDX-License-Identifier: Apache-2.0
// The layers of a Fourier neural operator against sums over the points of the grid.
#include <complex>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_host;
using Complex = std::complex<double>;

std::vector<double> output_of(const LayerAlone<double>& alone) {
  forward(alone.call);
  return to_host(alone.y);
}

/// exp(-2 pi i (k1 x1 + k2 x2) / n) of mode and point by their numbers.
Complex wave(const FourierGrid& grid, Size mode, Size point) {
  const Size row = mode / grid.modes, k2 = mode % grid.modes;
  const Size k1 = row < grid.modes ? row : row - 2 * grid.modes;
  const double turns = static_cast<double>(k1 * (point / grid.n) + k2 * (point % grid.n)) /
                       static_cast<double>(grid.n);
  return std::polar(1.0, -2 * std::numbers::pi * turns);
}

/// The column with the real part of a mode of a channel; the imaginary part is `width` later.
Size column(const FourierGrid& grid, Size mode, Size channel) {
  return mode * 2 * grid.width + channel;
}

LayerSpec fourier_part(const FourierGrid& grid, Size rank, Size ranks) {
  LayerSpec layer = fourier("y", "u", LayerSpec::data, grid);
  layer.sizes.at('q').own = balanced_split(2 * grid.modes, ranks, rank);
  return layer;
}

LayerSpec inverse_part(const FourierGrid& grid, Size rank, Size ranks) {
  LayerSpec layer = inverse_fourier("y", "u", LayerSpec::data, grid);
  layer.sizes.at('q').own = balanced_split(2 * grid.modes, ranks, rank);
  return layer;
}

const std::vector<FourierGrid> grids{{4, 2, 1}, {7, 3, 2}, {9, 1, 3}, {8, 2, 5}};

TEST(Fourier, ModesAreMeansOverTheGrid) {
  for (const FourierGrid& grid : grids)
    for (const Size ranks : {Size{1}, 2 * grid.modes})
      for (Size rank = 0; rank < ranks; ++rank) {
        const Size samples = 2, points = grid.n * grid.n, own = grid.num_modes() / ranks;
        SCOPED_TRACE(testing::Message() << grid.n << " points, rank " << rank << " of " << ranks);
        const LayerAlone<double> alone(fourier_part(grid, rank, ranks), samples);
        const auto y = output_of(alone), x = to_host(alone.x[0]);
        for (Size s = 0; s < samples; ++s)
          for (Size mode = 0; mode < own; ++mode)
            for (Size c = 0; c < grid.width; ++c) {
              Complex sum = 0;
              for (Size p = 0; p < points; ++p)
                sum += x[(s * points + p) * grid.width + c] * wave(grid, rank * own + mode, p);
              sum /= static_cast<double>(points);
              const Size at = s * alone.layer.out() + column(grid, mode, c);
              EXPECT_NEAR(y[at], sum.real(), 1e-14);
              EXPECT_NEAR(y[at + grid.width], sum.imag(), 1e-14);
            }
      }
}

TEST(InverseFourier, AddsUpModesAndTheirConjugates) {
  for (const FourierGrid& grid : grids)
    for (const Size ranks : {Size{1}, 2 * grid.modes})
      for (Size rank = 0; rank < ranks; ++rank) {
        const Size samples = 2, points = grid.n * grid.n, own = grid.num_modes() / ranks;
        SCOPED_TRACE(testing::Message() << grid.n << " points, rank " << rank << " of " << ranks);
        const LayerAlone<double> alone(inverse_part(grid, rank, ranks), samples);
        const auto y = output_of(alone), x = to_host(alone.x[0]);
        for (Size s = 0; s < samples; ++s)
          for (Size p = 0; p < points; ++p)
            for (Size c = 0; c < grid.width; ++c) {
              double sum = 0;
              for (Size mode = 0; mode < own; ++mode) {
                const Size at = s * alone.layer.in() + column(grid, mode, c);
                const Complex value(x[at], x[at + grid.width]);
                const double weight = (rank * own + mode) % grid.modes == 0 ? 1 : 2;
                sum += weight * (value * std::conj(wave(grid, rank * own + mode, p))).real();
              }
              EXPECT_NEAR(y[(s * points + p) * grid.width + c], sum, 1e-13);
            }
      }
}

/// The parts of the points of a grid that ranks of `context` have.
std::vector<SplitPart> shares(const FourierGrid& grid) {
  std::vector<SplitPart> all;
  for (const Size ways : {2, 3, 8, 100})
    for (Size part = 0; part < ways; ++part)
      for (const bool zigzag : {false, true})
        all.push_back({{grid.n * grid.n, ways, 1, zigzag}, part});
  return all;
}

/// Returns the points of a share in the order of its rows.
std::vector<Size> points_of(const SplitPart& share) {
  std::vector<Size> points;
  for (const Size number : {0, 1})
    for (Size i = 0; i < share.own_run(number).count; ++i)
      points.push_back(share.own_run(number).begin + i);
  return points;
}

TEST(Fourier, PartsOfAGridAddTheirPointsToTheMeans) {
  for (const FourierGrid& grid : grids)
    for (const SplitPart& share : shares(grid))
      for (Size rank = 0; rank < 2; ++rank) {
        const Size samples = 2, own = grid.num_modes() / 2;
        SCOPED_TRACE(testing::Message() << grid.n << " points, part " << share.part << " of "
                                        << share.parts << ", rank " << rank);
        LayerSpec layer = fourier_part(grid, rank, 2);
        layer.share = share;
        layer.sizes.at('p').own.count = share.own_count();
        const LayerAlone<double> alone(layer, samples);
        const auto y = output_of(alone), x = to_host(alone.x[0]);
        const std::vector<Size> points = points_of(share);
        for (Size s = 0; s < samples; ++s)
          for (Size mode = 0; mode < own; ++mode)
            for (Size c = 0; c < grid.width; ++c) {
              Complex sum = 0;
              for (Size p = 0; p < layer.positions_of(0); ++p)
                sum += x[(s * layer.positions_of(0) + p) * grid.width + c] *
                       wave(grid, rank * own + mode, points[p]);
              sum /= static_cast<double>(grid.n * grid.n);
              const Size at = s * layer.out() + column(grid, mode, c);
              ASSERT_NEAR(y[at], sum.real(), 1e-14);
              ASSERT_NEAR(y[at + grid.width], sum.imag(), 1e-14);
            }
      }
}

// Equals the points of the whole field.
TEST(InverseFourier, PartsOfAGridHaveTheirPoints) {
  for (const FourierGrid& grid : grids)
    for (const SplitPart& share : shares(grid))
      for (Size rank = 0; rank < 2; ++rank) {
        const Size samples = 2;
        SCOPED_TRACE(testing::Message() << grid.n << " points, part " << share.part << " of "
                                        << share.parts << ", rank " << rank);
        LayerSpec layer = inverse_part(grid, rank, 2);
        const LayerAlone<double> whole(layer, samples);
        layer.share = share;
        layer.sizes.at('p').own.count = share.own_count();
        const LayerAlone<double> alone(layer, samples);
        const auto y = output_of(alone), all = output_of(whole);
        const std::vector<Size> points = points_of(share);
        for (Size s = 0; s < samples; ++s)
          for (Size p = 0; p < layer.positions(); ++p)
            for (Size c = 0; c < grid.width; ++c)
              ASSERT_NEAR(y[(s * layer.positions() + p) * grid.width + c],
                          all[(s * grid.n * grid.n + points[p]) * grid.width + c], 1e-13);
      }
}

TEST(ModeProduct, MultipliesComplexNumbers) {
  const Size samples = 7, width = 3;
  const FourierGrid grid{4, 2, width};
  const LayerAlone<double> alone(mode_product("y", "u", LayerSpec::data, grid, 0), samples);
  const auto y = output_of(alone), x = to_host(alone.x[0]), r = to_host(alone.parameters[0]);
  const auto at = [&](const std::vector<double>& of, Size sample, Size mode, Size channel) {
    const Size real = (sample * grid.num_modes() + mode) * 2 * width + channel;
    return Complex(of[real], of[real + width]);
  };
  for (Size s = 0; s < samples; ++s)
    for (Size mode = 0; mode < grid.num_modes(); ++mode)
      for (Size out = 0; out < width; ++out) {
        Complex sum = 0;
        for (Size in = 0; in < width; ++in) {
          const Size real = (mode * 2 * width + in) * width + out;
          sum += at(x, s, mode, in) * Complex(r[real], r[real + width * width]);
        }
        EXPECT_LT(std::abs(at(y, s, mode, out) - sum), 1e-13);
      }
}

}  // namespace
}  // namespace tessera
