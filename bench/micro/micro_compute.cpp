// SPDX-License-Identifier: Apache-2.0
// The kernels of a step of an MLP, and a whole step with hardly any work. All ranks compute at
// once.
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/half_float.hpp>
#include <tessera/base/view.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/optim/optimizer.hpp>

#include "measure/case_run.hpp"
#include "micro/micro.hpp"

namespace tessera::bench {
namespace {

/// C (m, n) = op(A) op(B) with k summands.
struct Product {
  const char* name;
  Trans trans_a, trans_b;
  Size m, n, k;
  bool keeps_sums = false;  ///< C has the type of sums, as gradients of parameters
};

std::string to_string(const Product& p) {
  return fmt::format("{}/m:{}/n:{}/k:{}", p.name, p.m, p.n, p.k);
}

/// Returns the work of a product whose elements take `size` bytes, and its result `result_size`.
KernelWork work_of(const Product& p, Size size, Size result_size, const GemmType& type) {
  const Size bytes = size * (p.m * p.k + p.k * p.n) + result_size * p.m * p.n;
  return {GemmShape{p.m, p.n, p.k}.flops(), static_cast<double>(bytes), type};
}

/// `products`: the library of 16-bit or TF32 products, if it is one.
template <class T, class C>
std::function<void()> through_gemm(const Product& p, MatmulPrecision precision,
                                   std::optional<HalfProducts> products) {
  const Matrix<T> a = p.trans_a == Trans::yes ? drawn<T>(p.k, p.m, 1) : drawn<T>(p.m, p.k, 1),
                  b = p.trans_b == Trans::yes ? drawn<T>(p.n, p.k, 2) : drawn<T>(p.k, p.n, 2);
  const Matrix<C> c("tessera::bench::product", p.m, p.n);
  MatmulScratch scratch;
  if (products == HalfProducts::emulated) scratch = {p.m * p.k, p.k * p.n, p.m * p.n};
  return [=, gemm = Gemm<T>(precision, scratch)] { gemm(p.trans_a, p.trans_b, a, b, 0, c); };
}

/// The label names the library of 16-bit or TF32 products, which depends on build and processor.
template <class T>
void add_gemm(MicroContext& context, const Product& p, const char* name,
              MatmulPrecision precision = MatmulPrecision::strict) {
  context.add(fmt::format("{}/{}", name, to_string(p)), [=] {
    const auto products = half_products(dtype_of<T>(), precision);
    const Size result = p.keeps_sums ? sizeof(StateOf<T>) : sizeof(T);
    const GemmType type{dtype_of<T>(), has_native_tf32() ? precision : MatmulPrecision::strict};
    return MicroCase{
        .work = p.keeps_sums ? through_gemm<T, StateOf<T>>(p, precision, products)
                             : through_gemm<T, T>(p, precision, products),
        .kernel = work_of(p, sizeof(T), result, type),
        .label = products ? std::string(name_of(*products)) : "",
    };
  });
}

void add_product(MicroContext& context, const Product& p) {
  add_gemm<float>(context, p, "gemm");
  add_gemm<float>(context, p, "gemm_tf32", MatmulPrecision::tf32);
  add_gemm<BFloat16>(context, p, "gemm_bfloat16");
  add_gemm<Float16>(context, p, "gemm_float16");
}

void add_layer(MicroContext& context, Size rows, Size in, Size out) {
  add_product(context, {"forward", Trans::no, Trans::no, rows, out, in});
  add_product(context, {"weight_gradient", Trans::yes, Trans::no, in, out, rows, true});
  add_product(context, {"input_gradient", Trans::no, Trans::yes, rows, in, out});
}

void add_optimizer(MicroContext& context, OptimizerKind kind, const std::string& name, Size n) {
  context.add(fmt::format("optimizer/{}/n:{}", name, n), [=] {
    OptimizerConfig config;
    config.kind = kind;
    const auto optimizer = std::make_shared<Optimizer<float>>(config, n);
    const auto parameters = allocate_zeros<float>("tessera::bench::parameters", n);
    const auto gradients = allocate_zeros<float>("tessera::bench::gradients", n);
    // Reads parameters, gradients and moments; writes parameters and moments.
    const double vectors = 3.0 + 2.0 * static_cast<double>(moments_per_parameter(config));
    return MicroCase{[=] { optimizer->step(parameters, gradients, 1e-3F); },
                     KernelWork{.bytes = vectors * static_cast<double>(n) * sizeof(float)}};
  });
}

/// A step with one sample per rank and one weight, which measures the overhead of a step.
MicroCase empty_step(const Communicator& world) {
  Config config;
  config.model.mlp.widths = {1, 1};
  config.data.samples = config.training.batch_size = world.size();
  const std::shared_ptr<CaseRun> run = CaseRun::make(config, world);
  return {[=] { run->warm_up(1, [] {}); }};
}

}  // namespace

void add_compute_benchmarks(MicroContext& context) {
  const MicroOptions& options = context.options();
  const std::vector<Size>& widths = options.widths;
  Size parameters = 0;
  std::set<std::pair<Size, Size>> measured;  // each shape once
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const auto [in, out] = std::pair(widths[l], widths[l + 1]);
    if (measured.insert({in, out}).second) add_layer(context, options.batch, in, out);
    parameters += (in + 1) * out;
  }
  add_optimizer(context, OptimizerKind::sgd, "sgd", parameters);
  add_optimizer(context, OptimizerKind::adam, "adam", parameters);
  context.add("empty_step", [world = context.mesh().world()] { return empty_step(world); });
}

}  // namespace tessera::bench
