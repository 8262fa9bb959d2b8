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
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/optim/optimizer.hpp>

#include "measure/case_run.hpp"
#include "micro/micro.hpp"

/// The BLAS that Kokkos Kernels uses; null in builds without one.
extern "C" [[gnu::weak]] void sgemm_(const char*, const char*, const int*, const int*, const int*,
                                     const float*, const float*, const int*, const float*,
                                     const int*, const float*, float*, const int*);

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

template <class T, class C = T>
struct ProductOperands {
  explicit ProductOperands(const Product& p)
      : a(p.trans_a == Trans::yes ? drawn<T>(p.k, p.m, 1) : drawn<T>(p.m, p.k, 1)),
        b(p.trans_b == Trans::yes ? drawn<T>(p.n, p.k, 2) : drawn<T>(p.k, p.n, 2)),
        c("tessera::bench::product", p.m, p.n) {}
  Matrix<T> a, b;
  Matrix<C> c;
};

/// `products`: the library of 16-bit or TF32 products, if it is one.
template <class T, class C>
std::function<void()> through_gemm(const Product& p, MatmulPrecision precision,
                                   std::optional<HalfProducts> products) {
  MatmulScratch scratch;
  if (products == HalfProducts::emulated) scratch = {p.m * p.k, p.k * p.n, p.m * p.n};
  return [p, o = ProductOperands<T, C>(p), gemm = Gemm<T>(precision, scratch)] {
    gemm(p.trans_a, p.trans_b, o.a, o.b, 0, o.c);
  };
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

/// BLAS multiplies column-major matrices: C^T = op(B)^T op(A)^T.
std::function<void()> through_blas(const Product& p) {
  return [p, o = ProductOperands<float>(p)] {
    const char op_a = static_cast<char>(p.trans_a), op_b = static_cast<char>(p.trans_b);
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    const int lda = static_cast<int>(o.a.extent(1)), ldb = static_cast<int>(o.b.extent(1));
    const float one = 1, zero = 0;
    sgemm_(&op_b, &op_a, &n, &m, &k, &one, o.b.data(), &ldb, o.a.data(), &lda, &zero, o.c.data(),
           &n);
  };
}

void add_product(MicroContext& context, const Product& p) {
  add_gemm<float>(context, p, "gemm");
  if (Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible && sgemm_ != nullptr)
    context.add("blas/" + to_string(p), [=] {
      return MicroCase{through_blas(p), work_of(p, sizeof(float), sizeof(float), {})};
    });
  add_gemm<float>(context, p, "gemm_tf32", MatmulPrecision::tf32);
  add_gemm<BFloat16>(context, p, "gemm_bfloat16");
  add_gemm<Float16>(context, p, "gemm_float16");
}

void add_layer(MicroContext& context, Size rows, Size in, Size out) {
  add_product(context, {"forward", Trans::no, Trans::no, rows, out, in});
  add_product(context, {"weight_gradient", Trans::yes, Trans::no, in, out, rows, true});
  add_product(context, {"input_gradient", Trans::no, Trans::yes, rows, in, out});
  context.add(fmt::format("bias_relu/rows:{}/cols:{}", rows, out), [=] {
    const Matrix<float> z = drawn(rows, out, 3);
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
                     KernelWork{.bytes = bytes}};
  });
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
