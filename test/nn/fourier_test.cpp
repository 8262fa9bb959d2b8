// SPDX-License-Identifier: Apache-2.0
// The layers of a Fourier neural operator against sums over the points of the grid.
#include <complex>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/layers/layers.hpp>

#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::normal;
using test::to_device;
using test::to_host;
using Complex = std::complex<double>;

/// A layer on operands of its own, with the columns that one of several ranks has.
struct LayerAlone {
  LayerAlone(const LayerSpec& whole, Size samples, const Matrix<double>& input)
      : layer(whole),
        x(input),
        y("y", samples * layer.positions, layer.out),
        dx("dx", samples * layer.in_positions, layer.in),
        scratch("scratch", row_of(layer).scratch(layer)) {
    call.samples = samples;
    call.inputs[0] = x;
    call.output = y;
    call.scratch = scratch;
  }
  std::vector<double> forward() {
    tessera::forward(call);
    return to_host(y);
  }
  std::vector<double> backward(const Matrix<double>& dy) {
    call.output_gradient = dy;
    call.input_gradients[0] = dx;
    tessera::backward(call);
    return to_host(dx);
  }
  LayerSpec layer;
  Gemm<double> gemm;
  Matrix<double> x, y, dx;
  Vector<double> scratch;
  LayerCall<double> call{layer, gemm};
};

/// exp(-2 pi i (k1 x1 + k2 x2) / n) of mode and point by their numbers.
Complex wave(const FourierGrid& grid, Size mode, Size point) {
  const Size row = mode / grid.modes, k2 = mode % grid.modes;
  const Size k1 = row < grid.modes ? row : row - 2 * grid.modes;
  const double turns = static_cast<double>(k1 * (point / grid.n) + k2 * (point % grid.n)) /
                       static_cast<double>(grid.n);
  return std::polar(1.0, -2 * std::numbers::pi * turns);
}

/// Where the real part of a mode of a channel lies; the imaginary part is `width` further.
Size column(const FourierGrid& grid, Size mode, Size channel) {
  return mode * 2 * grid.width + channel;
}

LayerSpec fourier_part(const FourierGrid& grid, Size rank, Size ranks) {
  LayerSpec layer = fourier("y", "u", LayerSpec::data, grid);
  layer.positions = 1;
  layer.out /= ranks;
  layer.first = rank * layer.out;
  return layer;
}

LayerSpec inverse_part(const FourierGrid& grid, Size rank, Size ranks) {
  LayerSpec layer = inverse_fourier("y", "u", LayerSpec::data, grid);
  layer.in /= ranks;
  layer.first = rank * layer.in;
  return layer;
}

const std::vector<FourierGrid> grids{{4, 2, 1}, {7, 3, 2}, {9, 1, 3}, {8, 2, 5}};

TEST(Fourier, ModesAreMeansOverTheGrid) {
  for (const FourierGrid& grid : grids)
    for (const Size ranks : {Size{1}, 2 * grid.modes})
      for (Size rank = 0; rank < ranks; ++rank) {
        const Size samples = 2, points = grid.n * grid.n, own = grid.kept() / ranks;
        SCOPED_TRACE(testing::Message() << grid.n << " points, rank " << rank << " of " << ranks);
        LayerAlone alone(fourier_part(grid, rank, ranks), samples,
                         normal(samples * points, grid.width, 1));
        const auto y = alone.forward(), x = to_host(alone.x);
        for (Size s = 0; s < samples; ++s)
          for (Size mode = 0; mode < own; ++mode)
            for (Size c = 0; c < grid.width; ++c) {
              Complex sum = 0;
              for (Size p = 0; p < points; ++p)
                sum += x[(s * points + p) * grid.width + c] * wave(grid, rank * own + mode, p);
              sum /= static_cast<double>(points);
              const Size at = s * alone.layer.out + column(grid, mode, c);
              EXPECT_NEAR(y[at], sum.real(), 1e-14);
              EXPECT_NEAR(y[at + grid.width], sum.imag(), 1e-14);
            }
      }
}

TEST(InverseFourier, AddsUpModesAndTheirConjugates) {
  for (const FourierGrid& grid : grids)
    for (const Size ranks : {Size{1}, 2 * grid.modes})
      for (Size rank = 0; rank < ranks; ++rank) {
        const Size samples = 2, points = grid.n * grid.n, own = grid.kept() / ranks;
        SCOPED_TRACE(testing::Message() << grid.n << " points, rank " << rank << " of " << ranks);
        LayerAlone alone(inverse_part(grid, rank, ranks), samples,
                         normal(samples, own * 2 * grid.width, 2));
        const auto y = alone.forward(), x = to_host(alone.x);
        for (Size s = 0; s < samples; ++s)
          for (Size p = 0; p < points; ++p)
            for (Size c = 0; c < grid.width; ++c) {
              double sum = 0;
              for (Size mode = 0; mode < own; ++mode) {
                const Size at = s * alone.layer.in + column(grid, mode, c);
                const Complex value(x[at], x[at + grid.width]);
                const double weight = (rank * own + mode) % grid.modes == 0 ? 1 : 2;
                sum += weight * (value * std::conj(wave(grid, rank * own + mode, p))).real();
              }
              EXPECT_NEAR(y[(s * points + p) * grid.width + c], sum, 1e-13);
            }
      }
}

// Of k1 = -modes the conjugate is not kept where k2 = 0, so no real field may have that mode.
TEST(InverseFourier, RestoresAFieldWithoutOtherModes) {
  const FourierGrid grid{9, 3, 2};
  const Size samples = 2, points = 81;
  std::vector<double> field;
  for (Size s = 0; s < samples; ++s)
    for (Size p = 0; p < points; ++p)
      for (Size c = 0; c < grid.width; ++c) {
        const double unit = 2 * std::numbers::pi / 9, x1 = unit * static_cast<double>(p / 9),
                     x2 = unit * static_cast<double>(p % 9), phase = static_cast<double>(s + 2 * c);
        field.push_back(0.5 + std::sin(2 * x1 + phase) + 3 * std::cos(x1 - 2 * x2) +
                        2 * std::sin(2 * x1 + x2 - phase) + std::cos(-3 * x1 + 2 * x2 + phase));
      }
  LayerAlone there(fourier_part(grid, 0, 1), samples,
                   to_device(field, samples * points, grid.width));
  there.forward();
  LayerAlone back(inverse_part(grid, 0, 1), samples, there.y);
  const std::vector<double> restored = back.forward();
  for (std::size_t i = 0; i < field.size(); ++i) EXPECT_NEAR(restored[i], field[i], 1e-14 * 9);
}

// <dy, forward(x)> = <backward(dy), x>
TEST(Fourier, BackwardIsTheTranspose) {
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (const FourierGrid& grid : grids)
    for (const bool inverse : {false, true})
      for (const Size ranks : {1, 2}) {
        const LayerSpec layer =
            inverse ? inverse_part(grid, ranks - 1, ranks) : fourier_part(grid, ranks - 1, ranks);
        LayerAlone alone(layer, 3, normal(3 * layer.in_positions, layer.in, 3));
        const auto dy = normal(3 * layer.positions, layer.out, 4);
        const double forward = product(to_host(dy), alone.forward());
        EXPECT_NEAR(product(alone.backward(dy), to_host(alone.x)), forward, 1e-12) << grid.n;
      }
}

/// The operands of a mode_product; more samples than it multiplies at a time.
struct ProductAlone : LayerAlone {
  explicit ProductAlone(Size samples, const FourierGrid& grid = {4, 2, 3})
      : LayerAlone(mode_product("y", "u", LayerSpec::data, grid, 0), samples,
                   normal(samples, grid.kept() * 2 * grid.width, 1)),
        width(grid.width),
        modes(grid.kept()),
        r(normal(modes * 2 * width, width, 2)),
        dr(Vector<double>("dr", r.span())) {
    call.parameters[0] = Vector<const double>(r.data(), r.span());
  }
  Complex at(const std::vector<double>& of, Size sample, Size mode, Size channel) const {
    const Size first = (sample * modes + mode) * 2 * width + channel;
    return {of[first], of[first + width]};
  }
  Complex factor(const std::vector<double>& of, Size mode, Size in, Size out) const {
    const Size first = (mode * 2 * width + in) * width + out;
    return {of[first], of[first + width * width]};
  }
  Size width, modes;
  Matrix<double> r;
  Vector<double> dr;
};

TEST(ModeProduct, MultipliesComplexNumbers) {
  ProductAlone alone(70);
  const auto y = alone.forward(), x = to_host(alone.x), r = to_host(alone.r);
  for (Size s = 0; s < 70; ++s)
    for (Size mode = 0; mode < alone.modes; ++mode)
      for (Size out = 0; out < alone.width; ++out) {
        Complex sum = 0;
        for (Size in = 0; in < alone.width; ++in)
          sum += alone.at(x, s, mode, in) * alone.factor(r, mode, in, out);
        EXPECT_LT(std::abs(alone.at(y, s, mode, out) - sum), 1e-13);
      }
}

// With a number as the pair of its parts, gradients are products with conjugates.
TEST(ModeProduct, GradientsAreProductsWithConjugates) {
  ProductAlone alone(70);
  const auto dy_device = normal(70, alone.layer.out, 3);
  alone.call.parameter_gradients[0] = alone.dr;
  const auto dx = alone.backward(dy_device), dy = to_host(dy_device), x = to_host(alone.x),
             r = to_host(alone.r), dr = to_host(alone.dr);
  for (Size mode = 0; mode < alone.modes; ++mode)
    for (Size in = 0; in < alone.width; ++in) {
      for (Size s = 0; s < 70; ++s) {
        Complex sum = 0;
        for (Size out = 0; out < alone.width; ++out)
          sum += alone.at(dy, s, mode, out) * std::conj(alone.factor(r, mode, in, out));
        EXPECT_LT(std::abs(alone.at(dx, s, mode, in) - sum), 1e-13);
      }
      for (Size out = 0; out < alone.width; ++out) {
        Complex sum = 0;
        for (Size s = 0; s < 70; ++s)
          sum += std::conj(alone.at(x, s, mode, in)) * alone.at(dy, s, mode, out);
        EXPECT_LT(std::abs(alone.factor(dr, mode, in, out) - sum), 1e-12);
      }
    }
  alone.call.add_parameter_gradients = true;
  alone.backward(dy_device);
  const auto twice = to_host(alone.dr);
  for (std::size_t i = 0; i < dr.size(); ++i) EXPECT_NEAR(twice[i], 2 * dr[i], 1e-12);
}

TEST(ModeProduct, WithoutSamplesTheGradientIsZero) {
  ProductAlone alone(0);
  alone.call.parameter_gradients[0] = alone.dr;
  Kokkos::deep_copy(alone.dr, 7.0);
  alone.backward(normal(0, alone.layer.out, 3));
  EXPECT_EQ(to_host(alone.dr), std::vector<double>(alone.dr.extent(0), 0.0));
}

}  // namespace
}  // namespace tessera
