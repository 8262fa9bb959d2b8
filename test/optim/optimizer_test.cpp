// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/random/fill.hpp>

#include "device_data.hpp"

namespace tessera {
namespace {

using test::to_device;
using test::to_host;

/// One parameter and its state, by the formulas of optax in double.
struct Scalar {
  double p, m = 0, v = 0;
};
using UpdateRule = std::function<void(Scalar&, double g, double lr, int t)>;

struct Case {
  const char* name;
  OptimizerConfig config;
  UpdateRule rule;
};

UpdateRule adam_rule(double b1, double b2, double epsilon, double weight_decay) {
  return [=](Scalar& s, double g, double lr, int t) {
    s.m = b1 * s.m + (1 - b1) * g;
    s.v = b2 * s.v + (1 - b2) * g * g;
    const double m_hat = s.m / (1 - std::pow(b1, t)), v_hat = s.v / (1 - std::pow(b2, t));
    s.p -= lr * (m_hat / (std::sqrt(v_hat) + epsilon) + weight_decay * s.p);
  };
}

UpdateRule sgd_rule(double momentum, bool nesterov) {
  return [=](Scalar& s, double g, double lr, int) {
    s.m = g + momentum * s.m;
    s.p -= lr * (nesterov ? g + momentum * s.m : s.m);
  };
}

const std::vector<Case>& cases() {
  using enum OptimizerKind;
  static const std::vector<Case> all{
      {"sgd", {.kind = sgd}, sgd_rule(0, false)},
      {"momentum", {.kind = sgd, .momentum = 0.9}, sgd_rule(0.9, false)},
      {"nesterov", {.kind = sgd, .momentum = 0.8, .nesterov = true}, sgd_rule(0.8, true)},
      {"adam", {.kind = adam}, adam_rule(0.9, 0.999, 1e-8, 0)},
      {"adam_options",
       {.kind = adam, .beta1 = 0.7, .beta2 = 0.9, .epsilon = 0.1},
       adam_rule(0.7, 0.9, 0.1, 0)},
      {"adamw", {.kind = adamw, .weight_decay = 0.1}, adam_rule(0.9, 0.999, 1e-8, 0.1)},
      {"rmsprop",
       {.kind = rmsprop, .epsilon = 1e-3, .decay = 0.8},
       [](Scalar& s, double g, double lr, int) {
         s.v = 0.8 * s.v + 0.2 * g * g;
         s.p -= lr * g / std::sqrt(s.v + 1e-3);
       }},
  };
  return all;
}

template <class T>
Vector<T> normal(Size n, std::uint64_t seed) {
  Vector<T> v("v", n);
  fill_normal(Matrix<T>(v.data(), 1, n), key(seed));
  return v;
}

template <class T>
class OptimizerOf : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerOf, Scalars);

TYPED_TEST(OptimizerOf, FollowsItsFormulas) {
  using T = TypeParam;
  constexpr Size n = 37;
  for (const Case& c : cases()) {
    const Vector<T> p = normal<T>(n, 1);
    std::vector<Scalar> expected;
    for (T value : to_host(p)) expected.push_back({value});
    Optimizer<T> optimizer(c.config, n);
    for (int t = 1; t <= 5; ++t) {
      const Vector<T> g = normal<T>(n, 10 + t);
      const double lr = 0.1 / t;
      optimizer.step(p, g, static_cast<T>(lr), T(0.25));
      const auto hg = to_host(g), hp = to_host(p);
      for (Size i = 0; i < n; ++i) {
        c.rule(expected[i], 0.25 * hg[i], lr, t);
        EXPECT_NEAR(hp[i], expected[i].p, 20 * std::numeric_limits<T>::epsilon())
            << c.name << " step " << t;
      }
    }
    EXPECT_EQ(optimizer.steps(), 5);
  }
}

TYPED_TEST(OptimizerOf, RunsThatLieApartAreTheWholeBitForBit) {
  using T = TypeParam;
  for (const auto& [kind, bf16] :
       std::vector<std::pair<OptimizerKind, bool>>{{OptimizerKind::sgd, false},
                                                   {OptimizerKind::adam, false},
                                                   {OptimizerKind::rmsprop, false},
                                                   {OptimizerKind::sgd, true},
                                                   {OptimizerKind::adam, true},
                                                   {OptimizerKind::rmsprop, true}}) {
    OptimizerConfig config;
    config.kind = kind;
    if (kind == OptimizerKind::sgd) config.momentum = 0.9;
    const std::vector<Range> parts = {{0, 3}, {3, 0}, {3, 8}};
    const Vector<T> whole("p", 11), g("g", 11), apart("apart", 30);
    fill_normal(Matrix<T>(g.data(), 1, 11), key(1));
    std::vector<ParameterRun<T>> runs;
    for (const Range& part : parts) {
      const Size at = 2 * part.begin + 5;  // with something between them
      runs.push_back({alias_vector(apart.data() + at, part.count),
                      Vector<const T>(alias_vector(g.data() + part.begin, part.count))});
    }
    for (std::size_t part = 0; part < parts.size(); ++part)
      runs[part].key = key(3),
      runs[part].place = {.cols = 11, .block_cols = 11, .first = parts[part].begin};
    const ParameterRun<T> all{
        whole, g, true, 0, 0, 0, false, key(3), {.cols = 11, .block_cols = 11}};
    config.moments_type = static_cast<MomentsType>(bf16);
    Optimizer<T> one(config, 11), several(config, 11);
    for (int step = 0; step < 3; ++step) {
      one.step(std::span(&all, 1), T(0.1), T(0.5));
      several.step(runs, T(0.1), T(0.5));
    }
    std::vector<T> joined;
    for (const ParameterRun<T>& run : runs)
      for (const T value : to_host(run.params)) joined.push_back(value);
    EXPECT_EQ(joined, to_host(whole));
    for (Size m = 0; m < moments_per_parameter(config); ++m) {
      if (bf16)
        EXPECT_EQ(to_host(several.bf16_moment(m)), to_host(one.bf16_moment(m)));
      else
        EXPECT_EQ(to_host(several.moment(m)), to_host(one.moment(m)));
    }
    EXPECT_EQ(several.steps(), 3) << "a step, however many runs";
    EXPECT_EQ(to_host(apart)[4], 0) << "nothing between runs is touched";
  }
}

TYPED_TEST(OptimizerOf, ARunThatDoesNotDecayFollowsTheRuleWithoutDecay) {
  using T = TypeParam;
  const OptimizerConfig config{.kind = OptimizerKind::adamw, .weight_decay = 0.5};
  const Vector<T> p = normal<T>(8, 1), g = normal<T>(8, 2);
  std::vector<Scalar> expected;
  for (const T value : to_host(p)) expected.push_back({value});
  const std::vector<ParameterRun<T>> runs{
      {alias_vector(p.data(), 5), alias_vector(g.data(), 5)},
      {alias_vector(p.data() + 5, 3), alias_vector(g.data() + 5, 3), false}};
  Optimizer<T> optimizer(config, 8);
  for (int t = 1; t <= 3; ++t) {
    optimizer.step(runs, T(0.1));
    for (Size i = 0; i < 8; ++i) {
      adam_rule(0.9, 0.999, 1e-8, i < 5 ? 0.5 : 0)(expected[i], to_host(g)[i], 0.1, t);
      EXPECT_NEAR(to_host(p)[i], expected[i].p, 20 * std::numeric_limits<T>::epsilon()) << i;
    }
  }
}

TYPED_TEST(OptimizerOf, ARunWithASignRateMovesBySignsOnly) {
  using T = TypeParam;
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    OptimizerConfig config{.kind = kind};
    if (kind == OptimizerKind::adamw) config.weight_decay = 0.5;
    const Vector<T> p = to_device(std::vector<T>{1, 1, 1, 1}), g = normal<T>(4, 2);
    Kokkos::deep_copy(alias_vector(g.data(), 3), to_device(std::vector<T>{-7, 0, T(1e-9)}));
    Optimizer<T> optimizer(config, 4);
    const std::vector<ParameterRun<T>> runs{
        {alias_vector(p.data(), 3), alias_vector(g.data(), 3), true, T(0.25)},
        {alias_vector(p.data() + 3, 1), alias_vector(g.data() + 3, 1)}};
    for (int t = 0; t < 2; ++t) optimizer.step(runs, T(0.1), T(0.5));
    const std::vector<T> moved = to_host(p);
    EXPECT_EQ(std::vector<T>(moved.begin(), moved.begin() + 3), (std::vector<T>{1.5, 1, 0.5}));
    EXPECT_NE(moved[3], 1);
    if (kind == OptimizerKind::adamw) {
      EXPECT_EQ(to_host(optimizer.moments())[0], 0);
    }
  }
}

TYPED_TEST(OptimizerOf, AdamHoldsWhereSquaresUnderflowOrAlmostOverflow) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  const T small = std::sqrt(limits::min()), large = std::sqrt(limits::max()) / 2;
  const std::vector<T> g{0, limits::min(), small, -100 * small, T(-1e-8), 1, large, -large};
  const Size n = static_cast<Size>(g.size());
  for (const double weight_decay : {0.0, 0.1}) {
    const Vector<T> p("p", n);
    std::vector<Scalar> expected(g.size(), {0});
    Optimizer<T> adamw({.kind = OptimizerKind::adamw, .weight_decay = weight_decay}, n);
    const UpdateRule rule = adam_rule(0.9, 0.999, 1e-8, weight_decay);
    for (int t = 1; t <= 3; ++t) {
      adamw.step(p, to_device(g), T(0.1));
      const auto hp = to_host(p);
      for (Size i = 0; i < n; ++i) {
        rule(expected[i], g[i], 0.1, t);
        EXPECT_NEAR(hp[i], expected[i].p, 1e-4 * std::abs(expected[i].p)) << g[i] << " step " << t;
      }
    }
  }
}

// The first step of Adam has the length of the rate for any gradient. float32 cannot hold betas
// near 1.
TYPED_TEST(OptimizerOf, AdamCorrectsTheBiasOfBetasNearOne) {
  using T = TypeParam;
  for (const double beta2 : {0.9, 0.99, 0.999, 0.9991, 0.9999, 0.99999, 0.999999, 0.9999999999})
    for (const double beta1 : {0.9, 0.9999}) {
      SCOPED_TRACE(testing::Message() << beta1 << ", " << beta2);
      Optimizer<T> optimizer({.kind = OptimizerKind::adam, .beta1 = beta1, .beta2 = beta2}, 1);
      const UpdateRule rule = adam_rule(beta1, beta2, 1e-8, 0);
      Scalar expected{0};
      const Vector<T> p("p", 1);
      for (int t = 1; t <= 3; ++t) {
        const Vector<T> g = to_device(std::vector<T>{T(t)});
        optimizer.step(p, g, T(1));
        rule(expected, t, 1, t);
        EXPECT_NEAR(to_host(p)[0] / expected.p, 1, 1.5e-5) << t;
      }
    }
}

// One step from zero moments with beta 0: the first moment is the gradient itself, rounded.
TEST(Optimizer, Bf16MomentsAreUnbiasedAndOneOfTheTwoNeighbours) {
  constexpr Size n = 1 << 16;
  const Vector<float> p("p", n), g = normal<float>(n, 3);
  Optimizer<float> optimizer({.beta1 = 0, .beta2 = 0, .moments_type = MomentsType::bf16}, n);
  const ParameterRun<float> run{p, g, true, 0, 0, 0, false, key(7), {.cols = n, .block_cols = n}};
  optimizer.step(std::span(&run, 1), 0.1f);
  const auto exact = to_host(g);
  for (const Size moment : {0, 1}) {
    const auto kept = to_host(optimizer.bf16_moment(moment));
    double sum = 0, variance = 0, nearest = 0;  // in units of the last place
    for (Size i = 0; i < n; ++i) {
      const float value = moment == 0 ? exact[i] : exact[i] * exact[i];
      const double unit = std::ldexp(1, std::ilogb(value) - 7);
      const double error = (static_cast<float>(kept[i]) - value) / unit;
      ASSERT_LT(std::abs(error), 1) << value;
      const double up = value / unit - std::floor(value / unit);
      sum += error, variance += up * (1 - up);
      nearest += static_cast<float>(kept[i]) == static_cast<float>(BFloat16(value));
    }
    EXPECT_LT(std::abs(sum), 4 * std::sqrt(variance)) << "moment " << moment;
    EXPECT_NEAR(nearest / n, 0.75, 0.01) << "most, but not all, go to the nearest neighbour";
  }
}

TEST(Optimizer, AllocatesMomentsPerParameter) {
  for (const Case& c : cases()) {
    EXPECT_EQ(static_cast<Size>(Optimizer<float>(c.config, 11).moments().extent(0)),
              11 * moments_per_parameter(c.config));
  }
  EXPECT_EQ(moments_per_parameter({.kind = OptimizerKind::sgd}), 0);
  EXPECT_EQ(moments_per_parameter({.kind = OptimizerKind::sgd, .momentum = 0.9}), 1);
  EXPECT_EQ(moments_per_parameter({.kind = OptimizerKind::rmsprop}), 1);
  EXPECT_EQ(moments_per_parameter({.kind = OptimizerKind::adamw}), 2);
}

TEST(Optimizer, AcceptsAnEmptyShardAndRejectsAWrongExtent) {
  Optimizer<float> empty({}, 0);
  empty.step({}, {}, 0.1f);
  EXPECT_EQ(empty.steps(), 1);
  Optimizer<float> adam({}, 3);
  EXPECT_THROW(adam.step(Vector<float>("p", 4), Vector<float>("g", 4), 0.1f), Error);
  EXPECT_EQ(adam.steps(), 0);
}

}  // namespace
}  // namespace tessera
