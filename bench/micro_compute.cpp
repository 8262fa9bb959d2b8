// SPDX-License-Identifier: Apache-2.0
// What a rank computes in a step, on all ranks at once.
#include <dlfcn.h>

#include <fmt/format.h>

#include <tessera/base/view.hpp>
#include <tessera/nn/flops.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/random/fill.hpp>

#include "micro.hpp"

namespace tessera::bench {
namespace {

using Sgemm = void(const char*, const char*, const int*, const int*, const int*, const float*,
                   const float*, const int*, const float*, const int*, const float*, float*,
                   const int*);

/// The BLAS that Kokkos Kernels has brought along; none on devices, nor where there is none.
Sgemm* find_sgemm() {
  if (!Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible) return nullptr;
  return reinterpret_cast<Sgemm*>(dlsym(RTLD_DEFAULT, "sgemm_"));
}

Matrix<float> random_matrix(Size rows, Size cols, std::uint64_t seed) {
  const Matrix<float> made("tessera::bench::matrix", rows, cols);
  fill_normal(made, key(seed));
  return made;
}

/// C (m, n) = op(A) op(B) with k summands.
struct Product {
  const char* name;
  Trans trans_a, trans_b;
  Size m, n, k;
};

void add_product(MicroContext& context, const Product& product) {
  const auto [name, trans_a, trans_b, m, n, k] = product;
  const bool ta = trans_a == Trans::yes, tb = trans_b == Trans::yes;
  const Matrix<float> a = ta ? random_matrix(k, m, 1) : random_matrix(m, k, 1);
  const Matrix<float> b = tb ? random_matrix(n, k, 2) : random_matrix(k, n, 2);
  const Matrix<float> c("tessera::bench::product", m, n);
  const MicroContext::Rates rates{{"flops_per_second", static_cast<double>(gemm_flops(m, n, k))}};
  const std::string shape = fmt::format("{}/m:{}/n:{}/k:{}", name, m, n, k);
  const Gemm<float> gemm;
  const Trans opa = trans_a, opb = trans_b;
  context.add(
      "gemm/" + shape, [=] { gemm(opa, opb, 1, a, b, 0, c); }, rates);
  Sgemm* const sgemm = find_sgemm();
  if (sgemm == nullptr) return;
  // Row-major C = op(A) op(B) is column-major C^T = op(B)^T op(A)^T.
  context.add(
      "blas/" + shape,
      [=, rows = static_cast<int>(n), cols = static_cast<int>(m), sums = static_cast<int>(k),
       ldb = static_cast<int>(b.extent(1)), lda = static_cast<int>(a.extent(1))] {
        const float one = 1, zero = 0;
        sgemm(tb ? "T" : "N", ta ? "T" : "N", &rows, &cols, &sums, &one, b.data(), &ldb, a.data(),
              &lda, &zero, c.data(), &rows);
      },
      rates);
}

void add_layer(MicroContext& context, Size rows, Size in, Size out) {
  add_product(context, {"forward", Trans::no, Trans::no, rows, out, in});
  add_product(context, {"weight_gradient", Trans::yes, Trans::no, in, out, rows});
  add_product(context, {"input_gradient", Trans::no, Trans::yes, rows, in, out});
  const Matrix<float> z = random_matrix(rows, out, 3);
  const Vector<float> bias("tessera::bench::bias", out);
  const double bytes = 2.0 * static_cast<double>(rows * out) * sizeof(float);
  context.add(fmt::format("bias_relu/rows:{}/cols:{}", rows, out),
              [=] { bias_activation<float>(Activation::relu, z, bias, z); },
              {{"bytes_per_second", bytes}});
}

void add_optimizer(MicroContext& context, OptimizerKind kind, const std::string& name, Size n) {
  OptimizerConfig config;
  config.kind = kind;
  const auto optimizer = std::make_shared<Optimizer<float>>(config, n);
  const Vector<float> parameters("tessera::bench::parameters", n);
  const Vector<float> gradients("tessera::bench::gradients", n);
  // Parameters, gradients and moments are read, parameters and moments written.
  const double vectors = 3.0 + 2.0 * static_cast<double>(moments_per_parameter(config));
  context.add(fmt::format("optimizer/{}/n:{}", name, n),
              [=] { optimizer->step(parameters, gradients, 1e-3F); },
              {{"bytes_per_second", vectors * static_cast<double>(n) * sizeof(float)}});
}

}  // namespace

void add_compute_benchmarks(MicroContext& context) {
  const MicroOptions& options = context.options();
  Size parameters = 0;
  for (std::size_t l = 0; l + 1 < options.widths.size(); ++l) {
    add_layer(context, options.batch, options.widths[l], options.widths[l + 1]);
    parameters += (options.widths[l] + 1) * options.widths[l + 1];
  }
  const Size cols = options.widths.back();
  const Matrix<float> prediction = random_matrix(options.batch, cols, 4);
  const Matrix<float> target = random_matrix(options.batch, cols, 5);
  const Matrix<float> gradient("tessera::bench::gradient", options.batch, cols);
  const Vector<double> sums("tessera::bench::sums", 1);
  context.add(fmt::format("loss/mse/rows:{}/cols:{}", options.batch, cols),
              [=, count = options.batch * cols] {
                loss_and_gradient<float>(LossKind::mse, prediction, target, count, sums, 0,
                                         gradient);
              });
  add_optimizer(context, OptimizerKind::sgd, "sgd", parameters);
  add_optimizer(context, OptimizerKind::adam, "adam", parameters);
}

}  // namespace tessera::bench
