// SPDX-License-Identifier: Apache-2.0
// What a rank computes in a step, on all ranks at once.
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/short_float.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/random/fill.hpp>

#include "micro/micro.hpp"
#include "micro/sgemm.hpp"

namespace tessera::bench {
namespace {

template <class T = float>
Matrix<T> random_matrix(Size rows, Size cols, std::uint64_t seed) {
  const Matrix<T> made("tessera::bench::matrix", rows, cols);
  fill_normal(made, key(seed));
  return made;
}

/// C (m, n) = op(A) op(B) with k summands.
struct Product {
  const char* name;
  Trans trans_a, trans_b;
  Size m, n, k;
  bool keeps_sums = false;  ///< C stays in the type of sums, as gradients of parameters do
};

std::string to_string(const Product& p) {
  return fmt::format("{}/m:{}/n:{}/k:{}", p.name, p.m, p.n, p.k);
}

std::vector<std::pair<std::string, double>> rates_of(const Product& p) {
  return {{"flops_per_second", GemmShape{p.m, p.n, p.k}.flops()}};
}

/// Its operands, and C.
template <class T, class C = T>
struct Operands {
  explicit Operands(const Product& p)
      : a(p.trans_a == Trans::yes ? random_matrix<T>(p.k, p.m, 1) : random_matrix<T>(p.m, p.k, 1)),
        b(p.trans_b == Trans::yes ? random_matrix<T>(p.n, p.k, 2) : random_matrix<T>(p.k, p.n, 2)),
        c("tessera::bench::product", p.m, p.n) {}
  Matrix<T> a, b;
  Matrix<C> c;
};

template <class T>
Gemm<T> gemm_of(const Product& p, MatmulPrecision precision) {
  const bool is_emulated = half_products(dtype_of<T>(), precision) == HalfProducts::emulated;
  return Gemm<T>(precision,
                 is_emulated ? MatmulScratch{p.m * p.k, p.k * p.n, p.m * p.n} : MatmulScratch{});
}

template <class T, class C = T>
std::function<void()> through_gemm(const Product& p, MatmulPrecision precision) {
  return [p, o = Operands<T, C>(p), gemm = gemm_of<T>(p, precision)] {
    gemm(p.trans_a, p.trans_b, o.a, o.b, 0, o.c);
  };
}

std::function<void()> through_blas(const Product& p, const BlasProduct& sgemm) {
  return [=, o = Operands<float>(p)] { sgemm(p.trans_a, p.trans_b, o.a, o.b, o.c); };
}

/// The product of 16-bit operands, or in TF32: what multiplies them differs between builds and
/// processors.
template <class T>
void add_short_product(MicroContext& context, const Product& p, std::string_view name,
                       MatmulPrecision precision = MatmulPrecision::strict) {
  context.add(fmt::format("gemm_{}/{}", name, to_string(p)), [=] {
    return MicroCase{
        .work = p.keeps_sums ? through_gemm<T, StateOf<T>>(p, precision)
                             : through_gemm<T>(p, precision),
        .rates = rates_of(p),
        .label = std::string(name_of(*half_products(dtype_of<T>(), precision))),
    };
  });
}

void add_product(MicroContext& context, const Product& p) {
  context.add("gemm/" + to_string(p), [=] {
    return MicroCase{through_gemm<float>(p, MatmulPrecision::strict), rates_of(p)};
  });
  if (const BlasProduct sgemm = find_sgemm())
    context.add("blas/" + to_string(p), [=] {
      return MicroCase{through_blas(p, sgemm), rates_of(p)};
    });
  add_short_product<float>(context, p, "tf32", MatmulPrecision::tf32);
  add_short_product<BFloat16>(context, p, "bfloat16");
  add_short_product<Float16>(context, p, "float16");
}

void add_layer(MicroContext& context, Size rows, Size in, Size out) {
  add_product(context, {"forward", Trans::no, Trans::no, rows, out, in});
  add_product(context, {"weight_gradient", Trans::yes, Trans::no, in, out, rows, true});
  add_product(context, {"input_gradient", Trans::no, Trans::yes, rows, in, out});
  context.add(fmt::format("bias_relu/rows:{}/cols:{}", rows, out), [=] {
    const Matrix<float> z = random_matrix(rows, out, 3);
    const Vector<float> bias("tessera::bench::bias", out);
    const double bytes = 2.0 * static_cast<double>(rows * out) * sizeof(float);
    const LayerSpec layer = pointwise("y", "layer", 0, out, Activation::relu, "mlp");
    return MicroCase{[=] {
                       const Gemm<float> no_product;
                       LayerCall<float> call{layer, no_product};
                       call.inputs[0] = call.output = z;
                       call.parameters[0] = bias;
                       forward(call);
                     },
                     {{"bytes_per_second", bytes}}};
  });
}

void add_loss(MicroContext& context, Size rows, Size cols) {
  context.add(fmt::format("loss/mse/rows:{}/cols:{}", rows, cols), [=] {
    const Matrix<float> prediction = random_matrix(rows, cols, 4);
    const Matrix<float> target = random_matrix(rows, cols, 5);
    const Matrix<float> gradient("tessera::bench::gradient", rows, cols);
    const Vector<double> sums("tessera::bench::sums", 1);
    return MicroCase{[=] {
      loss_and_gradient<float>(LossKind::mse, prediction, target, rows * cols, sums, 0, gradient);
    }};
  });
}

void add_optimizer(MicroContext& context, OptimizerKind kind, const std::string& name, Size n) {
  context.add(fmt::format("optimizer/{}/n:{}", name, n), [=] {
    OptimizerConfig config;
    config.kind = kind;
    const auto optimizer = std::make_shared<Optimizer<float>>(config, n);
    const auto parameters = allocate_zeros<float>("tessera::bench::parameters", n);
    const auto gradients = allocate_zeros<float>("tessera::bench::gradients", n);
    // Parameters, gradients and moments are read, parameters and moments written.
    const double vectors = 3.0 + 2.0 * static_cast<double>(moments_per_parameter(config));
    return MicroCase{[=] { optimizer->step(parameters, gradients, 1e-3F); },
                     {{"bytes_per_second", vectors * static_cast<double>(n) * sizeof(float)}}};
  });
}

/// Reads and writes what Adam does, without its division and root.
void multiply_add(Size n, float* p, const float* g, float* m, float* v) {
  for_each(
      "tessera::bench::optimizer_limit", n, KOKKOS_LAMBDA(Size i) {
        const float mi = 0.9F * m[i] + g[i], vi = 0.9F * v[i] + g[i];
        m[i] = mi;
        v[i] = vi;
        p[i] -= 1e-3F * (mi + vi);
      });
}

/// What Adam could reach if nothing but memory took time.
void add_optimizer_limit(MicroContext& context, Size n) {
  context.add(fmt::format("optimizer_limit/adam/n:{}", n), [=] {
    const auto parameters = allocate_zeros<float>("tessera::bench::parameters", n);
    const auto gradients = allocate_zeros<float>("tessera::bench::gradients", n);
    const auto moments = allocate_zeros<float>("tessera::bench::moments", 2 * n);
    return MicroCase{[=] {
                       multiply_add(n, parameters.data(), gradients.data(), moments.data(),
                                    moments.data() + n);
                     },
                     {{"bytes_per_second", 7.0 * static_cast<double>(n) * sizeof(float)}}};
  });
}

}  // namespace

void add_compute_benchmarks(MicroContext& context) {
  const MicroOptions& options = context.options();
  const std::vector<Size>& widths = options.widths;
  Size parameters = 0;
  std::set<std::pair<Size, Size>> measured;  // layers of one shape are measured once
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const auto [in, out] = std::pair(widths[l], widths[l + 1]);
    if (measured.insert({in, out}).second) add_layer(context, options.batch, in, out);
    parameters += (in + 1) * out;
  }
  add_loss(context, options.batch, widths.back());
  add_optimizer(context, OptimizerKind::sgd, "sgd", parameters);
  add_optimizer(context, OptimizerKind::adam, "adam", parameters);
  add_optimizer_limit(context, parameters);
}

}  // namespace tessera::bench
