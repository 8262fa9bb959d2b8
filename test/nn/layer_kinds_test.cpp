// SPDX-License-Identifier: Apache-2.0
// Checks that hold for every kind of layer, from one list of the kinds.
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layers.hpp>

#include "nn/layer_alone.hpp"

namespace tessera {
namespace {

using test::LayerAlone;
using test::to_device;
using test::to_host;

/// Sets the rows per sample of the inputs and the output.
LayerSpec with_positions(Size positions, LayerSpec layer) {
  layer.sizes.emplace('p', positions);
  return layer;
}

/// Every kind, and the parts of a rank for kinds whose kernels depend on where the part begins.
std::vector<LayerSpec> kinds() {
  const FourierGrid grid{5, 2, 3};
  const Routing routing{3, 2, 3, 0.7, 0.3};  // of 4 positions
  Routing gates_of_one = routing, sigmoids = routing, biased = routing;
  gates_of_one.renormalize = true;
  sigmoids.router = biased.router = Router::sigmoid;
  biased.renormalize = true;
  biased.bias_rate = 0.1;
  std::vector<LayerSpec> all{
      linear("linear", "u", 0, {"kernel", {3, 4}, {"embed", "mlp"}}),
      tied_linear("tied_linear", "u", 0, 0, 5, 3),
      add("add", "u", 0, 1, 4),
      layer_norm("layer_norm", "u", 0, 5, "embed"),
      layer_norm("layer_norm without bias", "u", 0, 5, "embed", 1e-3, false),
      rms_norm("rms_norm", "u", 0, 5, "embed", 1e-3),
      with_positions(2, head_norm("norm of keys", "u", 0, 3, 2, 4, 1e-5)),
      with_positions(4, rotary("rotated queries", "u", 0, 3, 1, 4, {})),
      with_positions(5, rotary("rotated keys of a rank", "u", 0, 3, 2, 4, {100, 2, 1, 4, 3})),
      gated("gated", "u", 0, 4, Activation::silu),
      gated("gate of tanh", "u", 0, 4, Activation::tanh),
      gated("gates of experts", "u", 0, 6, Activation::silu, 3),
      with_positions(4, grouped_attention("grouped attention", "u", 0, 1, 4, 2, 3, 4)),
      with_positions(7, grouped_attention("grouped, many blocks", "u", 0, 1, 6, 2, 2, 7)),
      embedding("embedding", "u", 7, 4, 3, 0),
      embedding("rows of a table", "u", 7, 4, 3, 0),
      embedding("positions of a rank", "u", 7, 5, 3, 0),
      with_positions(4, causal_attention("attention", "u", 0, 2, 3)),
      with_positions(7, causal_attention("rows of three ranks", "u", 0, 2, 3)),
      with_positions(7, causal_attention("many blocks", "u", 0, 2, 3)),
      with_positions(7, causal_attention("keys of all ranks", "u", 0, 2, 3)),
      keys_values(with_positions(4, causal_attention("attention", "u", 0, 2, 3))),
      fourier("fourier", "u", 0, grid),
      fourier("modes of a rank", "u", 0, grid),
      fourier("points of a rank", "u", 0, grid),
      mode_product("mode_product", "u", 0, grid, 0),
      mode_product("factors of a rank", "u", 0, grid, 0),
      inverse_fourier("inverse_fourier", "u", 0, grid),
      inverse_fourier("sum over modes of a rank", "u", 0, grid),
      inverse_fourier("at points of a rank", "u", 0, grid),
      reparameterize("reparameterize", "u", 0, 1, 3, 3, 42),
      pointwise("no bias", "u", 0, 4, Activation::gelu),
      jet_activation("jets of tanh", "u", 0, 5, Activation::tanh, "mlp"),
      jet_activation("jets of identity", "u", 0, 5, Activation::identity, "mlp"),
      with_positions(4, route("route", "u", 0, routing)),
      with_positions(4, route("renormalized gates", "u", 0, gates_of_one)),
      with_positions(4, route("sigmoids", "u", 0, sigmoids)),
      with_positions(4, route("biased, renormalized sigmoids", "u", 0, biased)),
      dispatch("dispatch", "u", 0, 1, 3, 4, routing),
      dispatch("experts of a rank", "u", 0, 1, 3, 4, routing),
      linear("grouped_linear", "u", 0, {"kernel", {3, 4, 2}, {"experts", "", ""}}),
      combine("combine", "u", 0, 1, 5, 4, routing),
      combine("sum over experts of a rank", "u", 0, 1, 5, 4, routing)};
  for (LayerSpec& layer : all) {
    const auto own = [&](char index) -> Range& { return layer.sizes.at(index).own; };
    const auto share = [&](const SplitPart& positions) {
      layer.share = positions;
      own('p').count = positions.own_count();
    };
    if (layer.name == "rotated keys of a rank") share({{5, 2, 1, true}, 1});
    if (layer.name.ends_with("many blocks")) layer.tiling.queries = 3, layer.tiling.keys = 2;
    if (layer.name == "keys of all ranks") {
      layer.sizes.emplace('t', 7);
      layer.inputs = {0, 1};
      layer.tiling.queries = 3, layer.tiling.keys = 2;
      share({{7, 3, 1, true}, 1});
    }
    if (layer.name == "positions of a rank") share({{5, 2, 1, true}, 1});
    if (layer.name == "rows of three ranks") layer.share = {{7, 3, 1, true}, 0};
    if (layer.name == "rows of a table") own('v') = {3, 4}, layer.parameters[0].shape[0] = 4;
    if (layer.name == "experts of a rank") own('e') = {1, 2};
    if (layer.name == "sum over experts of a rank") own('e') = {1, 1};
    if (layer.name == "modes of a rank") own('q') = {2, 2};
    if (layer.name == "points of a rank") share({{25, 3, 1, true}, 1});
    if (layer.name == "at points of a rank") share({{25, 3}, 2});
    if (layer.name == "factors of a rank") layer.share = {{25, 4, 1, true}, 3}, own('m') = {6, 2};
    if (layer.name == "sum over modes of a rank") own('q') = {2, 2};
  }
  for (const Activation activation : {Activation::identity, Activation::relu, Activation::tanh,
                                      Activation::sigmoid, Activation::gelu, Activation::silu})
    all.push_back(pointwise(std::string(name_of(activation)), "u", 0, 4, activation, "mlp"));
  return all;
}

constexpr Size batch_samples = 3;

bool has_gradient(const LayerAlone<double>& alone, std::size_t input) {
  return alone.layer.inputs[input] != LayerSpec::data;
}

std::vector<double> input_gradient(const LayerAlone<double>& alone, std::size_t input) {
  return to_host(alone.layer.kind->passes_gradient(alone.layer) ? alone.dy : alone.dx[input]);
}

/// Backward computes the derivatives of this: sum of y dy + gradient_scale * (terms of the loss).
double value(const LayerAlone<double>& alone) {
  forward(alone.call);
  const auto y = to_host(alone.y), dy = to_host(alone.dy);
  double sum = 0;
  for (const double term : to_host(alone.loss)) sum += alone.call.batch.gradient_scale * term;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

void expect_differences(const LayerAlone<double>& alone, const Matrix<double>& operand,
                        const std::vector<double>& gradient) {
  const auto at = to_host(operand);
  constexpr double h = 1e-5;
  const auto value_with = [&](std::size_t i, double element) {
    auto moved = at;
    moved[i] = element;
    Kokkos::deep_copy(operand, to_device(moved, operand.extent(0), operand.extent(1)));
    return value(alone);
  };
  for (std::size_t i = 0; i < at.size(); ++i)
    EXPECT_NEAR((value_with(i, at[i] + h) - value_with(i, at[i] - h)) / (2 * h), gradient[i], 1e-6)
        << i;
  Kokkos::deep_copy(operand, to_device(at, operand.extent(0), operand.extent(1)));
}

TEST(LayerKinds, GradientsAgreeWithFiniteDifferences) {
  for (const LayerSpec& layer : kinds()) {
    SCOPED_TRACE(layer.name);
    const LayerAlone<double> alone(layer, batch_samples);
    alone.run();
    std::vector<std::vector<double>> inputs, parameters;
    for (std::size_t i = 0; i < alone.x.size(); ++i) inputs.push_back(input_gradient(alone, i));
    for (const auto& gradient : alone.gradients) parameters.push_back(to_host(gradient));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (has_gradient(alone, i)) expect_differences(alone, alone.x[i], inputs[i]);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      // Only the rank with row 0 of the table adds the positions, but every rank has their
      // gradient.
      if (p > 0 && layer.part('v').begin > 0) continue;
      const bool is_own = p < layer.parameters.size();
      if (is_own && layer.parameters[p].sign_rate != 0) continue;  // a load is no derivative
      expect_differences(alone, alone.parameters[p], parameters[p]);
    }
  }
}

/// A gradient is not wanted if the layer reads the batch.
TEST(LayerKinds, WriteOnlyTheGradientsThatAreWanted) {
  for (const LayerSpec& layer : kinds())
    for (std::size_t unwanted = 0; unwanted < layer.inputs.size(); ++unwanted) {
      SCOPED_TRACE(layer.name);
      if (layer.kind->name == "attention") continue;  // it never reads the batch
      const LayerAlone<double> all(layer, batch_samples);
      LayerAlone<double> some(layer, batch_samples);
      all.run();
      some.call.input_gradients[unwanted] = {};
      some.run();
      for (std::size_t i = 0; i < all.dx.size(); ++i)
        EXPECT_EQ(to_host(some.dx[i]),
                  i == unwanted ? std::vector<double>(all.dx[i].size()) : to_host(all.dx[i]));
      for (std::size_t p = 0; p < all.gradients.size(); ++p)
        EXPECT_EQ(to_host(some.gradients[p]), to_host(all.gradients[p]));
    }
}

TEST(LayerKinds, AddToGradients) {
  for (const LayerSpec& layer : kinds()) {
    SCOPED_TRACE(layer.name);
    LayerAlone<double> alone(layer, batch_samples);
    alone.run();
    const auto once = to_host(alone.dx[0]);
    std::vector<std::vector<double>> parameters;
    for (const auto& gradient : alone.gradients) parameters.push_back(to_host(gradient));
    alone.call.add_parameter_gradients = true;
    alone.call.add_input_gradients = layer.kind->adds_gradient;
    if (layer.kind->adds_gradient) Kokkos::deep_copy(alone.dx[0], 7);
    backward(alone.call);
    const auto again = to_host(alone.dx[0]);
    for (std::size_t i = 0; i < once.size(); ++i)
      EXPECT_NEAR(again[i], once[i] + (layer.kind->adds_gradient ? 7 : 0), 1e-13);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const auto twice = to_host(alone.gradients[p]);
      for (std::size_t i = 0; i < twice.size(); ++i)
        EXPECT_NEAR(twice[i], 2 * parameters[p][i], 1e-12);
    }
  }
}

// Plans let two tensors share memory if the kind allows it.
TEST(LayerKinds, OverwriteInPlace) {
  for (const LayerSpec& layer : kinds()) {
    SCOPED_TRACE(layer.name);
    const LayerKind& kind = *layer.kind;
    LayerAlone<double> alone(layer, batch_samples);
    alone.run();
    const auto copy_of = [](const Matrix<double>& m) {
      return to_device(to_host(m), m.extent(0), m.extent(1));
    };
    for (std::size_t i = 0; i < alone.x.size() && kind.gradient_in_place; ++i) {
      if (kind.passes_gradient(layer)) continue;
      const Matrix<double> shared = copy_of(alone.dy);
      alone.call.output_gradient = alone.call.input_gradients[i] = shared;
      backward(alone.call);
      EXPECT_EQ(to_host(shared), to_host(alone.dx[i]));
      alone.call.input_gradients[i] = copy_of(alone.dx[i]);
    }
    if (kind.in_place_of < 0) continue;
    const auto i = static_cast<std::size_t>(kind.in_place_of);
    const Matrix<double> shared = copy_of(alone.x[i]);
    alone.call.inputs[i] = alone.call.output = shared;
    forward(alone.call);
    EXPECT_EQ(to_host(shared), to_host(alone.y));
  }
}

TEST(LayerKinds, WithoutSamplesGradientsAreZeroOrStay) {
  for (const LayerSpec& layer : kinds()) {
    SCOPED_TRACE(layer.name);
    LayerAlone<double> alone(layer, 0);
    for (const bool adds : {true, false}) {
      alone.call.add_parameter_gradients = adds;
      for (const auto& gradient : alone.gradients) Kokkos::deep_copy(gradient, 3);
      alone.run();
      for (const auto& gradient : alone.gradients)
        EXPECT_EQ(to_host(gradient), std::vector<double>(gradient.extent(0), adds ? 3 : 0));
    }
    for (const double term : to_host(alone.loss)) EXPECT_EQ(term, 0);
  }
}

template <class T>
class LayerKindsIn : public testing::Test {};
using ComputeTypes = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(LayerKindsIn, ComputeTypes);

/// Limits of errors: `relative` for one rounding of a result, `sums` for sums in the state type.
/// Attention and the transforms also round results between two products.
struct Rounding {
  double relative, sums;
};
template <class T>
Rounding rounding_of(const LayerSpec& layer) {
  if (std::is_same_v<T, float>) return {0x1p-22, 1e-5};
  const double unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;
  const std::string_view kind = layer.kind->name;
  const bool rounds_between = kind == "attention" || kind == "fourier" || kind == "inverse_fourier";
  return {1.01 * unit, rounds_between ? 60 * unit : 1e-5};
}

template <class A, class B>
void expect_rounded(const std::vector<A>& got, const std::vector<B>& wanted, Rounding rounding) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = static_cast<StateOf<A>>(got[i]), b = static_cast<StateOf<B>>(wanted[i]);
    ASSERT_NEAR(a, b, rounding.relative * std::abs(b) + rounding.sums) << i;
  }
}

TYPED_TEST(LayerKindsIn, EqualTheWiderTypeRoundedOnce) {
  using T = TypeParam;
  using Wider = std::conditional_t<std::is_same_v<T, float>, double, float>;
  for (const LayerSpec& layer : kinds()) {
    SCOPED_TRACE(layer.name);
    const Rounding rounding = rounding_of<T>(layer);
    const LayerAlone<T> alone(layer, batch_samples);
    const LayerAlone<Wider> wide(layer, batch_samples);
    wide.take_operands(alone);
    forward(alone.call);
    forward(wide.call);
    expect_rounded(to_host(alone.y), to_host(wide.y), rounding);
    wide.take(alone.y, wide.y);  // backward starts from the same output
    backward(alone.call);
    backward(wide.call);
    for (std::size_t i = 0; i < alone.dx.size(); ++i)
      if (alone.call.input_gradients[i].data() != nullptr)
        expect_rounded(to_host(alone.dx[i]), to_host(wide.dx[i]), rounding);
    expect_rounded(to_host(alone.terms), to_host(wide.terms), {0, rounding.sums});
    for (std::size_t p = 0; p < alone.gradients.size(); ++p)
      expect_rounded(to_host(alone.gradients[p]), to_host(wide.gradients[p]), rounding);
    for (std::size_t i = 0; i < alone.loss.extent(0); ++i)
      EXPECT_NEAR(to_host(alone.loss)[i], to_host(wide.loss)[i], 1e-4);
  }
}

/// Layers that take several samples, heads or modes at once compute what they compute one by one.
TYPED_TEST(LayerKindsIn, ComputeSeveralMatricesAtOnce) {
  using T = TypeParam;
  const auto expect_same = [](const auto& one_by_one, const auto& at_once) {
    const auto expected = to_host(one_by_one), result = to_host(at_once);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(static_cast<double>(result[i]), static_cast<double>(expected[i]),
                  on_host ? 0 : 1e-2 * (1 + std::abs(static_cast<double>(expected[i]))));
  };
  for (LayerSpec layer : kinds())
    for (const Size samples : {1, 5}) {
      layer.tiling.room = 1;
      const LayerAlone<T> expected(layer, samples);
      expected.run();
      for (const Size room : {20, 100, 1 << 24}) {
        SCOPED_TRACE(testing::Message() << layer.name << ", " << samples << " samples, " << room);
        layer.tiling.room = room;
        const LayerAlone<T> alone(layer, samples);
        alone.run();
        expect_same(expected.y, alone.y);
        expect_same(expected.terms, alone.terms);
        for (std::size_t i = 0; i < alone.dx.size(); ++i) expect_same(expected.dx[i], alone.dx[i]);
        for (std::size_t p = 0; p < alone.gradients.size(); ++p)
          expect_same(expected.gradients[p], alone.gradients[p]);
      }
    }
}

/// Results that are terms of a sum over ranks stay in the state type.
TYPED_TEST(LayerKindsIn, DoNotRoundTerms) {
  using T = TypeParam;
  using State = StateOf<T>;
  int terms = 0;
  for (const LayerSpec& layer : kinds()) {
    for (const char index : splittable(layer.kind->expression)) {
      SCOPED_TRACE(layer.name + ", split by " + index);
      const Layout layout = derive(layer.kind->expression, {&index, 1});
      const Rounding rounding{0, rounding_of<T>(layer).sums};
      LayerAlone<T> alone(layer, batch_samples);
      const LayerAlone<State> wide(layer, batch_samples);
      wide.take_operands(alone);
      wide.run();
      const bool forwards = layout.output.is_partial();
      if (!forwards && !layout.input_gradients[0].is_partial()) continue;
      const Matrix<State> wanted = forwards ? wide.y : wide.dx[0],
                          sum("sum", wanted.extent(0), wanted.extent(1));
      (forwards ? alone.call.output_terms : alone.call.input_gradient_terms[0]) = sum;
      (forwards ? alone.call.output : alone.call.input_gradients[0]) = Matrix<T>();
      forwards ? forward(alone.call) : backward(alone.call);
      expect_rounded(to_host(sum), to_host(wanted), rounding);
      ++terms;
    }
  }
  // linear and tied_linear; embedding, fourier, inverse_fourier, dispatch, combine and their parts
  EXPECT_EQ(terms, 4 + 3 + 6 + 6 + 4 + 4);
}

// In an arena, a layer without bias has an empty View at the address of the next layer.
TEST(Pointwise, DoesNotReadOrWriteAnEmptyBias) {
  LayerAlone<double> alone(pointwise("y", "u", 0, 5, Activation::relu), 4);
  forward(alone.call);
  const auto y = to_host(alone.y);
  const Vector<double> next("next", 5);
  Kokkos::deep_copy(next, 7);
  alone.call.parameters[0] = alias_vector<const double>(next.data(), 0);
  alone.call.parameter_gradients[0] = alias_vector(next.data(), 0);
  alone.run();
  EXPECT_EQ(to_host(alone.y), y);
  EXPECT_EQ(to_host(next), std::vector<double>(5, 7));
}

TEST(Pointwise, SumsTheColumnsOfMatricesWiderThanOneBlock) {
  for (Size cols : {1, 31, 33, 1023, 1025, 2049}) {
    const LayerAlone<double> alone(pointwise("y", "u", 0, cols, Activation::identity, "mlp"), 19);
    backward(alone.call);
    const auto values = to_host(alone.dy), sums = to_host(alone.gradients[0]);
    for (Size j = 0; j < cols; ++j) {
      double sum = 0;
      for (Size i = 0; i < 19; ++i) sum += values[i * cols + j];
      EXPECT_NEAR(sums[j], sum, 1e-13) << cols << " " << j;
    }
  }
}

}  // namespace
}  // namespace tessera
