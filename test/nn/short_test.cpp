// SPDX-License-Identifier: Apache-2.0
// Products and layers with 16-bit operands: what float makes of the same numbers, rounded once.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/products/convert.hpp>

#include "device_data.hpp"
#include "nn/serial_model.hpp"

namespace tessera {
namespace {

using test::to_host;

template <class T>
constexpr double unit = std::is_same_v<T, BFloat16> ? 0x1p-8 : 0x1p-11;  // of rounding

template <class T>
Matrix<T> normal(Size rows, Size cols, std::uint64_t seed) {
  Matrix<T> m("m", rows, cols);
  fill_normal(m, key(seed));
  return m;
}

template <class T>
Matrix<float> widened(const Matrix<T>& m) {
  Matrix<float> wide("wide", m.extent(0), m.extent(1));
  const Size n = static_cast<Size>(m.span());
  convert<T, float>(alias_vector<const T>(m.data(), n), alias_vector(wide.data(), n));
  return wide;
}

template <class T>
std::vector<double> numbers(const Matrix<T>& m) {
  std::vector<double> values;
  for (const T value : to_host(m)) values.push_back(static_cast<StateOf<T>>(value));
  return values;
}

/// Each within half a unit of the last place of what it is rounded from, which sums of floats know
/// to `sums`.
template <class T, class U>
void expect_rounded(const Matrix<T>& got, const Matrix<U>& wanted, double sums = 1e-5) {
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  ASSERT_EQ(a.size(), b.size());
  const double relative = is_half_v<T> ? unit<T> : 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1.01 * relative * std::abs(b[i]) + sums) << i;
}

template <class T>
class ShortOf : public testing::Test {};
using ShortTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(ShortOf, ShortTypes);

TYPED_TEST(ShortOf, ProductsAreThoseOfFloatsEmulatedAndNative) {
  using T = TypeParam;
  for (const ShortProducts products : {ShortProducts::emulated, short_products(dtype_of<T>())})
    for (const auto& [m, n, k] : std::vector<std::array<Size, 3>>{
             {1, 1, 1}, {5, 1, 7}, {1, 5, 7}, {5, 7, 1}, {13, 11, 17}, {64, 48, 80}})
      for (const Trans ta : {Trans::no, Trans::yes})
        for (const Trans tb : {Trans::no, Trans::yes})
          for (const float beta : {0.0f, 1.0f}) {
            SCOPED_TRACE(testing::Message()
                         << name_of(products) << " " << m << "x" << n << "x" << k << " "
                         << static_cast<char>(ta) << static_cast<char>(tb) << " beta " << beta);
            const auto a = ta == Trans::no ? normal<T>(m, k, 1) : normal<T>(k, m, 1);
            const auto b = tb == Trans::no ? normal<T>(k, n, 2) : normal<T>(n, k, 2);
            const auto c = normal<T>(m, n, 3);
            const auto wanted = widened(c), sums = widened(c);
            Gemm<float>()(ta, tb, widened(a), widened(b), beta, wanted);
            const Gemm<T> gemm(MatmulPrecision::strict, {m * k, k * n, m * n}, products);
            gemm(ta, tb, a, b, beta, c);
            expect_rounded(c, wanted);
            gemm(ta, tb, a, b, beta, sums);
            expect_rounded(sums, wanted);
          }
}

TYPED_TEST(ShortOf, AnEmptySumLeavesBetaC) {
  using T = TypeParam;
  const Matrix<T> a("a", 0, 3), b("b", 0, 2);
  for (const ShortProducts products : {ShortProducts::emulated, short_products(dtype_of<T>())}) {
    const Gemm<T> gemm(MatmulPrecision::strict, {0, 0, 6}, products);
    const auto c = normal<T>(3, 2, 1);
    const auto before = numbers(c);
    gemm(Trans::yes, Trans::no, a, b, 1, c);
    EXPECT_EQ(numbers(c), before);
    gemm(Trans::yes, Trans::no, a, b, 0, c);
    EXPECT_EQ(numbers(c), std::vector<double>(6, 0));
  }
}

TYPED_TEST(ShortOf, EmulationNeedsScratchMemoryAndNoTf32) {
  using T = TypeParam;
  const Matrix<T> a("a", 2, 2), b("b", 2, 2), c("c", 2, 2);
  for (const MatmulScratch& scratch :
       {MatmulScratch{3, 4, 4}, MatmulScratch{4, 3, 4}, MatmulScratch{4, 4, 3}}) {
    const Gemm<T> gemm(MatmulPrecision::strict, scratch, ShortProducts::emulated);
    EXPECT_THROW(gemm(Trans::no, Trans::no, a, b, 0, c), Error);
  }
  EXPECT_THROW(Gemm<T>(MatmulPrecision::tf32), ConfigError);
}

/// The operands of a layer, and the same numbers as floats.
template <class T>
struct Operands {
  Operands(const LayerSpec& layer, Size rows)
      : scratch(1000),
        gemm(MatmulPrecision::strict, {scratch, scratch, scratch}, ShortProducts::emulated),
        call{layer, gemm},
        wide_call{layer, wide_gemm} {
    call.samples = wide_call.samples = rows / layer.positions;
    const auto set = [&](auto& mine, auto& wide, Size cols, std::uint64_t seed) {
      const auto made = normal<T>(rows, cols, seed);
      mine = made;
      wide = widened(made);
    };
    set(call.inputs[0], wide_call.inputs[0], layer.in, 1);
    set(call.output, wide_call.output, layer.out, 2);
    set(call.output_gradient, wide_call.output_gradient, layer.out, 3);
    set(call.input_gradients[0], wide_call.input_gradients[0], layer.in, 4);
    call.kept = normal<float>(rows, 2, 5);
    wide_call.kept = normal<float>(rows, 2, 5);
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      const Size n = num_elements(layer.parameters[p].shape);
      const auto made = normal<T>(1, n, 6 + p);
      parameters.push_back(made);
      wide_parameters.push_back(widened(made));
      call.parameters[p] = alias_vector(parameters.back().data(), n);
      wide_call.parameters[p] = alias_vector(wide_parameters.back().data(), n);
      call.parameter_gradients[p] = Vector<float>("gradient", n);
      wide_call.parameter_gradients[p] = Vector<float>("gradient", n);
    }
  }

  Size scratch;
  Gemm<T> gemm;
  Gemm<float> wide_gemm;
  LayerCall<T> call;
  LayerCall<float> wide_call;
  std::vector<Matrix<T>> parameters;
  std::vector<Matrix<float>> wide_parameters;
};

template <class T>
void expect_layer_of_floats(const LayerSpec& layer, Size rows = 7) {
  Operands<T> operands(layer, rows);
  LayerCall<T>& call = operands.call;
  LayerCall<float>& wide = operands.wide_call;
  forward(call);
  forward(wide);
  expect_rounded(call.output, wide.output);
  expect_rounded(call.kept, wide.kept);
  // From the same output on.
  wide.output = widened(call.output);
  backward(call);
  backward(wide);
  expect_rounded(call.input_gradients[0], wide.input_gradients[0]);
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    const Size n = num_elements(layer.parameters[p].shape);
    expect_rounded(alias_matrix(call.parameter_gradients[p].data(), 1, n),
                   alias_matrix(wide.parameter_gradients[p].data(), 1, n));
  }
}

TYPED_TEST(ShortOf, LayersComputeInFloat) {
  for (const Activation activation :
       {Activation::relu, Activation::tanh, Activation::sigmoid, Activation::gelu}) {
    SCOPED_TRACE(name_of(activation));
    expect_layer_of_floats<TypeParam>(pointwise("y", "layer", 0, 5, activation, "mlp"));
  }
  expect_layer_of_floats<TypeParam>(jet_activation("y", "layer", 0, 5, Activation::tanh, "mlp"),
                                    2 * jet_rows);
  expect_layer_of_floats<TypeParam>(layer_norm("y", "layer", 0, 5, "mlp"));
  expect_layer_of_floats<TypeParam>(linear("y", "layer", 0, {"kernel", {11, 5}, {"a", "b"}}));
}

TYPED_TEST(ShortOf, TermsOfSumsAreNotRounded) {
  using T = TypeParam;
  const LayerSpec layer = linear("y", "layer", 0, {"kernel", {11, 5}, {"a", "b"}});
  Operands<T> operands(layer, 7);
  LayerCall<T>& call = operands.call;
  call.output_terms = Matrix<float>("terms", 7, 5);
  call.input_gradient_terms[0] = Matrix<float>("terms", 7, 11);
  forward(call);
  forward(operands.wide_call);
  backward(call);
  backward(operands.wide_call);
  expect_rounded(call.output_terms, operands.wide_call.output, 1e-6);
  expect_rounded(call.input_gradient_terms[0], operands.wide_call.input_gradients[0], 1e-6);
}

TYPED_TEST(ShortOf, TheLossIsComputedInFloatAndItsGradientScaled) {
  using T = TypeParam;
  for (const LossKind kind : {LossKind::mse, LossKind::mae, LossKind::relative_l2}) {
    SCOPED_TRACE(name_of(kind));
    const auto prediction = normal<T>(5, 3, 1);
    const auto target = normal<float>(5, 3, 2), wide_gradient = normal<float>(5, 3, 3);
    const auto gradient = normal<T>(5, 3, 3);
    const Vector<double> sums("sums", 2);
    loss_and_gradient<T>(kind, prediction, target, 1 << 20, sums, 0, gradient, {1024});
    loss_and_gradient<float>(kind, widened(prediction), target, 1 << 10, sums, 1, wide_gradient);
    EXPECT_EQ(to_host(sums)[0], to_host(sums)[1]);
    expect_rounded(gradient, wide_gradient, 1e-9);
  }
}

}  // namespace
}  // namespace tessera
