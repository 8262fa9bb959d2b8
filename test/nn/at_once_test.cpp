// SPDX-License-Identifier: Apache-2.0
// Layers that take several samples, heads or modes at once compute what they compute one by one.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/for_each.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_host;

constexpr FourierGrid grid{6, 2, 3};

/// Attention with 5 heads; with `share`, of a rank that reads keys and values of all positions.
LayerSpec attention(Size positions, const SplitPart& share) {
  LayerSpec layer = causal_attention("y", "u", 0, 5, 3);
  layer.sizes.emplace('p', positions);
  layer.share = share;
  if (share.parts > 1) {
    layer.sizes.at('p').own.count = share.own_count();
    layer.sizes.emplace('t', positions);
    layer.inputs = {0, 1};
  }
  return layer;
}

/// 65 and 600 positions have several blocks of scores.
std::vector<LayerSpec> layers() {
  std::vector<LayerSpec> all{mode_product("m", "u", 0, grid, 0), fourier("f", "u", 0, grid),
                             inverse_fourier("i", "u", 0, grid)};
  for (const Size positions : {7, 65, 600}) {
    all.push_back(attention(positions, {{positions}}));
    all.push_back(attention(positions, {{positions, 3, 1, true}, 1}));
  }
  const SplitPart share{{grid.n * grid.n, 3, 1, true}, 1};
  all.push_back(fourier("f", "u", 0, grid));
  all.back().share = share;
  all.back().sizes.at('p').own.count = share.own_count();
  all.push_back(inverse_fourier("i", "u", 0, grid));
  all.back().share = share;
  all.back().sizes.at('p').own.count = share.own_count();
  return all;
}

template <class V>
void expect_same(const V& one_by_one, const V& at_once) {
  const auto expected = to_host(one_by_one), result = to_host(at_once);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(static_cast<double>(result[i]), static_cast<double>(expected[i]),
                on_host ? 0 : 1e-2 * (1 + std::abs(static_cast<double>(expected[i]))));
}

/// Runs a layer; the gradient of keys and values that ranks share is a sum of unrounded terms.
template <class T>
Matrix<StateOf<T>> terms_of(LayerAlone<T>& alone) {
  Matrix<StateOf<T>> terms;
  if (alone.dx.size() > 1) {
    terms = Matrix<StateOf<T>>("terms", alone.dx[1].extent(0), alone.dx[1].extent(1));
    alone.call.input_gradients[1] = {};
    alone.call.input_gradient_terms[1] = terms;
  }
  alone.run();
  return terms;
}

template <class T>
class AtOnce : public testing::Test {};
using Types = testing::Types<float, double, BFloat16, Float16>;
TYPED_TEST_SUITE(AtOnce, Types);

TYPED_TEST(AtOnce, ChangesNothing) {
  using T = TypeParam;
  for (LayerSpec layer : layers())
    for (const Size samples : {0, 1, 5}) {
      layer.tiling.room = 1;
      LayerAlone<T> expected(layer, samples);
      const auto expected_terms = terms_of(expected);
      for (const Size room : {100, 1 << 15, 1 << 24}) {
        SCOPED_TRACE(testing::Message() << row_of(layer).name << ", " << samples << " samples, "
                                        << room << " elements of room");
        layer.tiling.room = room;
        LayerAlone<T> alone(layer, samples);
        expect_same(expected_terms, terms_of(alone));
        expect_same(expected.y, alone.y);
        for (std::size_t i = 0; i < alone.dx.size(); ++i) expect_same(expected.dx[i], alone.dx[i]);
        for (std::size_t i = 0; i < alone.gradients.size(); ++i)
          expect_same(expected.gradients[i], alone.gradients[i]);
      }
    }
}

}  // namespace
}  // namespace tessera
