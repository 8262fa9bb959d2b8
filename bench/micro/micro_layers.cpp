// SPDX-License-Identifier: Apache-2.0
// The kinds of layers that transformers and Fourier operators are made of, and their many small
// products.
#include <memory>

#include <KokkosBatched_Gemm_Decl.hpp>
#include <fmt/format.h>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/random/fill.hpp>

#include "micro/micro.hpp"
#include "micro/sgemm.hpp"

namespace tessera::bench {
namespace {

// A small GPT and the operator of the seeds' tutorial.
constexpr Size positions = 256, width = 512, heads = 8, head_width = width / heads;
constexpr Size vocabulary = 1024;
constexpr FourierGrid grid{32, 12, 32};

Matrix<float> drawn(Size rows, Size cols, std::uint64_t seed) {
  const auto made = allocate_matrix<float>("tessera::bench::operand", rows, cols);
  fill_normal(made, key(seed));
  return made;
}

/// A layer by itself, with operands of its own.
class LayerAlone {
 public:
  LayerAlone(const LayerSpec& layer, Size samples) : layer_(layer), call_{layer_, gemm_, samples} {
    const LayerRow& row = row_of(layer_);
    const Size rows_in = samples * layer_.in_positions, rows = samples * layer_.positions;
    for (std::size_t i = 0; i < layer_.inputs.size(); ++i) {
      call_.inputs[i] = drawn(rows_in, layer_.in, 1 + i);
      call_.input_gradients[i] = drawn(rows_in, layer_.in, 3);
    }
    for (std::size_t p = 0; p < layer_.parameters.size(); ++p) {
      const Size n = num_elements(layer_.parameters[p].shape);
      call_.parameters[p] = allocate_zeros<float>("tessera::bench::parameter", n);
      call_.parameter_gradients[p] = allocate_zeros<float>("tessera::bench::gradient", n);
    }
    call_.output = drawn(rows, layer_.out, 5);
    call_.output_gradient = drawn(rows, layer_.out, 6);
    call_.kept = drawn(rows, row.kept_columns, 7);
    call_.scratch = allocate_zeros<float>("tessera::bench::scratch", row.scratch(layer_));
  }
  LayerAlone(const LayerAlone&) = delete;
  LayerAlone& operator=(const LayerAlone&) = delete;

  void run(bool forwards) const { forwards ? forward(call_) : backward(call_); }

  /// FLOPs of its products, or where it has none, the bytes of its operands: each once.
  std::pair<std::string, double> rate(bool forwards) const {
    const PassCount flops = count_flops({layer_}, call_.samples);
    if (flops.forward > 0) return {"flops_per_second", (forwards ? flops.forward : flops.backward)};
    const PassCount elements = count_operands(layer_, call_.samples);
    return {"bytes_per_second", (forwards ? elements.forward : elements.backward) * sizeof(float)};
  }

 private:
  LayerSpec layer_;
  Gemm<float> gemm_;
  LayerCall<float> call_;
};

void add_layer(MicroContext& context, const std::string& name, LayerSpec layer, Size samples) {
  for (const bool forwards : {true, false})
    context.add(
        fmt::format("layer/{}/{}/samples:{}", name, forwards ? "forward" : "backward", samples),
        [=] {
          const auto alone = std::make_shared<LayerAlone>(layer, samples);
          return MicroCase{[=] { alone->run(forwards); }, {alone->rate(forwards)}};
        });
}

LayerSpec over(Size in_positions, Size out_positions, LayerSpec layer) {
  layer.in_positions = in_positions;
  layer.positions = out_positions;
  return layer;
}

void add_cross_entropy(MicroContext& context, Size rows) {
  context.add(fmt::format("loss/cross_entropy/rows:{}/cols:{}", rows, vocabulary), [=] {
    const Matrix<float> logits = drawn(rows, vocabulary, 1), gradient = drawn(rows, vocabulary, 2);
    const auto targets = allocate_matrix<float>("tessera::bench::targets", rows, 1);
    Kokkos::deep_copy(targets, 3);
    const Vector<double> sums("tessera::bench::sums", 1);
    const double bytes = 2.0 * static_cast<double>(logits.size()) * sizeof(float);
    return MicroCase{[=] {
                       loss_and_gradient<float>(LossKind::cross_entropy, logits, targets, rows,
                                                sums, 0, gradient);
                     },
                     {{"bytes_per_second", bytes}}};
  });
}

/// C = A op(B), `count` times, with the matrices of each kind one below the other.
struct ManyProducts {
  std::string name;
  Size count, m, n, k;
  Trans trans_b;
};

struct ManyOperands {
  explicit ManyOperands(const ManyProducts& p)
      : a(drawn(p.count * p.m, p.k, 1)),
        b(p.trans_b == Trans::no ? drawn(p.count * p.k, p.n, 2) : drawn(p.count * p.n, p.k, 2)),
        c(drawn(p.count * p.m, p.n, 3)) {}
  Matrix<float> a, b, c;
};

/// Kokkos Kernels' product of a team, one for each product.
template <class TransB>
struct TeamProducts {
  Matrix<float> a, b, c;
  Size m, rows_b;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size first = team.league_rank() * m, first_b = team.league_rank() * rows_b;
    const auto part = [](const Matrix<float>& of, Size begin, Size rows) {
      return Kokkos::subview(of, Kokkos::make_pair(begin, begin + rows), Kokkos::ALL);
    };
    KokkosBatched::TeamVectorGemm<Team, KokkosBatched::Trans::NoTranspose, TransB,
                                  KokkosBatched::Algo::Gemm::Unblocked>::invoke(team, 1.0F,
                                                                                part(a, first, m),
                                                                                part(b, first_b,
                                                                                     rows_b),
                                                                                0.0F,
                                                                                part(c, first, m));
  }
};

std::function<void()> through_teams(const ManyProducts& p, const ManyOperands& o) {
  const auto run = [=](auto trans) {
    using Kernel = TeamProducts<decltype(trans)>;
    const Kernel kernel{o.a, o.b, o.c, p.m, static_cast<Size>(o.b.extent(0)) / p.count};
    for_each_row("tessera::bench::team_products", p.count, p.m * p.n, kernel);
  };
  if (p.trans_b == Trans::no) return [=] { run(KokkosBatched::Trans::NoTranspose{}); };
  return [=] { run(KokkosBatched::Trans::Transpose{}); };
}

/// One after the other. Multiply: (trans_a, trans_b, A, B, C).
template <class Multiply>
std::function<void()> in_turn(const ManyProducts& p, const ManyOperands& o,
                              const Multiply& multiply) {
  return [=] {
    const Size rows_b = static_cast<Size>(o.b.extent(0)) / p.count;
    for (Size i = 0; i < p.count; ++i)
      multiply(Trans::no, p.trans_b, rows_of(o.a, {i * p.m, p.m}),
               rows_of(o.b, {i * rows_b, rows_b}), rows_of(o.c, {i * p.m, p.m}));
  };
}

void add_many_products(MicroContext& context, const ManyProducts& p) {
  const auto add = [&](const char* way, const auto& work_of) {
    context.add(fmt::format("{}/{}/count:{}/m:{}/n:{}/k:{}", p.name, way, p.count, p.m, p.n, p.k),
                [=] {
                  const GemmShape shape{p.m, p.n, p.k, p.count};
                  return MicroCase{work_of(ManyOperands(p)), {{"flops_per_second", shape.flops()}}};
                });
  };
  add("gemm", [=](const ManyOperands& o) {
    return in_turn(p, o,
                   [gemm = Gemm<float>()](Trans ta, Trans tb, const auto& a, const auto& b,
                                          const auto& c) { gemm(ta, tb, a, b, 0, c); });
  });
  if (const BlasProduct sgemm = find_sgemm())
    add("blas", [=](const ManyOperands& o) { return in_turn(p, o, sgemm); });
  add("kokkos_batched", [=](const ManyOperands& o) { return through_teams(p, o); });
}

}  // namespace

void add_layer_benchmarks(MicroContext& context) {
  // For 1024 rows, the default, 16 sequences and 32 fields.
  const Size sequences = std::max<Size>(1, context.options().batch / 64);
  const Size fields = std::max<Size>(1, context.options().batch / 32);
  add_layer(context, "layer_norm",
            over(positions, positions, layer_norm("y", "u", 0, width, "embed")), sequences);
  add_layer(context, "gelu",
            over(positions, positions, pointwise("y", "u", 0, 4 * width, Activation::gelu, "mlp")),
            sequences);
  add_layer(context, "gelu_without_bias",
            over(positions, positions, pointwise("y", "u", 0, 4 * width, Activation::gelu)),
            sequences);
  add_layer(context, "attention",
            over(positions, positions, causal_attention("y", "u", 0, heads, head_width)),
            sequences);
  const Size points = grid.n * grid.n;
  add_layer(context, "fourier", over(points, 1, fourier("y", "u", 0, grid)), fields);
  add_layer(context, "mode_product", mode_product("y", "u", 0, grid, 0), fields);
  add_layer(context, "inverse_fourier", over(1, points, inverse_fourier("y", "u", 0, grid)),
            fields);
  add_cross_entropy(context, sequences * positions);
  add_many_products(context,
                    {"scores", sequences * heads, positions, positions, head_width, Trans::yes});
  add_many_products(context,
                    {"modes", grid.kept(), fields, 2 * grid.width, 2 * grid.width, Trans::no});
}

}  // namespace tessera::bench
