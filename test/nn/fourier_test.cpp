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

constexpr Size samples = 2;

/// What a rank has: a part of the frequencies k1, along `model`, and of the points, along
/// `context`.
struct Rank {
  FourierGrid grid;
  Range modes;  ///< all k2 of its k1
  SplitPart share;
  std::vector<Size> points;  ///< in the order of its rows

  LayerSpec part_of(LayerSpec layer) const {
    layer.sizes.at('q').own = {modes.begin / grid.modes, modes.count / grid.modes};
    layer.sizes.at('p').own.count = share.own_count();
    layer.share = share;
    return layer;
  }
};

/// Calls f(rank) for ranks of some meshes.
template <class F>
void for_ranks(const F& f) {
  for (const FourierGrid& grid :
       std::vector<FourierGrid>{{4, 2, 1}, {7, 3, 2}, {9, 1, 3}, {8, 2, 5}})
    for (const bool zigzag : {false, true})
      for (const Size ways : {1, 2, 3, 8, 100})
        for (const Size of_model : ways > 1 ? std::vector<Size>{2} : std::vector{1, 2 * grid.modes})
          for (Size i = 0; i < ways * of_model; ++i) {
            SCOPED_TRACE(testing::Message()
                         << grid.n << " points, rank " << i << " of " << ways << " x " << of_model);
            const Range k1 = balanced_split(2 * grid.modes, of_model, i % of_model);
            Rank rank{grid,
                      {k1.begin * grid.modes, k1.count * grid.modes},
                      {{grid.n * grid.n, ways, 1, zigzag}, i / of_model},
                      {}};
            for (const Size number : {0, 1}) {
              const Range run = rank.share.own_run(number);
              for (Size point = run.begin; point < run.end(); ++point) rank.points.push_back(point);
            }
            f(rank);
          }
}

/// exp(-2 pi i (k1 x1 + k2 x2) / n) of mode and point by their numbers.
Complex wave(const FourierGrid& grid, Size mode, Size point) {
  const Size row = mode / grid.modes, k2 = mode % grid.modes;
  const Size k1 = row < grid.modes ? row : row - 2 * grid.modes;
  const double turns = static_cast<double>(k1 * (point / grid.n) + k2 * (point % grid.n)) /
                       static_cast<double>(grid.n);
  return std::polar(1.0, -2 * std::numbers::pi * turns);
}

/// Returns a mode of a channel; the imaginary part is `width` behind the real part.
Complex mode_of(const FourierGrid& grid, const std::vector<double>& values, Size mode,
                Size channel) {
  const Size at = mode * 2 * grid.width + channel;
  return {values[at], values[at + grid.width]};
}

TEST(Fourier, ModesAreMeansOverTheGrid) {
  for_ranks([](const Rank& rank) {
    const FourierGrid& grid = rank.grid;
    const LayerAlone<double> alone(rank.part_of(fourier("y", "u", LayerSpec::data, grid)), samples);
    forward(alone.call);
    const auto y = to_host(alone.y), x = to_host(alone.x[0]);
    const Size rows = static_cast<Size>(rank.points.size());
    for (Size s = 0; s < samples; ++s)
      for (Size mode = 0; mode < rank.modes.count; ++mode)
        for (Size c = 0; c < grid.width; ++c) {
          Complex sum = 0;
          for (Size p = 0; p < rows; ++p)
            sum += x[(s * rows + p) * grid.width + c] *
                   wave(grid, rank.modes.begin + mode, rank.points[p]);
          sum /= static_cast<double>(grid.n * grid.n);
          ASSERT_LT(std::abs(mode_of(grid, y, s * rank.modes.count + mode, c) - sum), 2e-14);
        }
  });
}

TEST(InverseFourier, AddsUpModesAndTheirConjugates) {
  for_ranks([](const Rank& rank) {
    const FourierGrid& grid = rank.grid;
    const LayerAlone<double> alone(rank.part_of(inverse_fourier("y", "u", LayerSpec::data, grid)),
                                   samples);
    forward(alone.call);
    const auto y = to_host(alone.y), x = to_host(alone.x[0]);
    const Size rows = static_cast<Size>(rank.points.size());
    for (Size s = 0; s < samples; ++s)
      for (Size p = 0; p < rows; ++p)
        for (Size c = 0; c < grid.width; ++c) {
          double sum = 0;
          for (Size mode = 0; mode < rank.modes.count; ++mode) {
            const Size number = rank.modes.begin + mode;
            const double weight = number % grid.modes == 0 ? 1 : 2;
            sum += weight * (mode_of(grid, x, s * rank.modes.count + mode, c) *
                             std::conj(wave(grid, number, rank.points[p])))
                                .real();
          }
          ASSERT_NEAR(y[(s * rows + p) * grid.width + c], sum, 1e-13);
        }
  });
}

TEST(ModeProduct, MultipliesComplexNumbers) {
  const Size width = 3;
  const FourierGrid grid{4, 2, width};
  const LayerAlone<double> alone(mode_product("y", "u", LayerSpec::data, grid, 0), samples);
  forward(alone.call);
  const auto y = to_host(alone.y), x = to_host(alone.x[0]), r = to_host(alone.parameters[0]);
  for (Size mode = 0; mode < samples * grid.num_modes(); ++mode)
    for (Size out = 0; out < width; ++out) {
      Complex sum = 0;
      for (Size in = 0; in < width; ++in) {
        const Size real = (mode % grid.num_modes() * 2 * width + in) * width + out;
        sum += mode_of(grid, x, mode, in) * Complex(r[real], r[real + width * width]);
      }
      EXPECT_LT(std::abs(mode_of(grid, y, mode, out) - sum), 1e-13);
    }
}

}  // namespace
}  // namespace tessera
