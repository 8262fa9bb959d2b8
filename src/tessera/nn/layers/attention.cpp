// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string attention_softmax_label = "tessera::attention_softmax";
const std::string attention_scores_label = "tessera::attention_score_gradients";

std::vector<Layout> attention_layouts() { return {alike(by_columns)}; }

/// q, k, v and the output of each head are on one rank.
bool whole_heads(const LayerSpec& layer) {
  return layer.in == 3 * layer.out && layer.out % layer.groups.columns == 0;
}

LayerProducts attention_products(const LayerSpec& layer, Size samples) {
  const Size t = layer.positions, d = layer.groups.columns, heads = samples * (layer.out / d);
  const GemmShape scores{t, t, d, heads}, values{t, d, t, heads};
  return {{scores, values}, {values, scores, values, values}};
}

/// Three (positions, positions) squares: see Attention::square.
Size attention_scratch(const LayerSpec& layer, Size) {
  return 3 * layer.positions * layer.positions;
}

/// Row i: p = softmax(scale s) over the columns up to i, and 0 in the others. Overwrites s; p may
/// alias s.
template <class T>
struct CausalSoftmax {
  using Math = StateOf<T>;
  Math* s;
  T* p;
  Size t;
  Math scale;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank(), seen = i + 1;
    Math* const in = s + i * t;
    T* const out = p + i * t;
    const Math largest =
        detail::reduce_lanes<Kokkos::Max, Math>(team, seen, [=](Size j) { return in[j]; });
    const Math factor = scale;
    const auto columns = Kokkos::TeamVectorRange(team, seen);
    detail::for_each_lane(columns, seen, [=](Size j) {
      in[j] = detail::exp_of_nonpositive(factor * (in[j] - largest));
    });
    const Math inverse = Math(1) / detail::reduce_lanes<Kokkos::Sum, Math>(
                                       team, seen, [=](Size j) { return in[j]; });
    detail::for_each_lane(columns, seen, [=](Size j) { out[j] = inverse * in[j]; });
    const Size hidden = t - seen;
    detail::for_each_lane(Kokkos::TeamVectorRange(team, hidden), hidden,
                          [=](Size j) { out[seen + j] = Math(0); });
  }
};

/// ds = scale p (dp - sum_j p dp) in each row; ds may alias dp.
template <class T>
struct ScoreGradients {
  using Math = StateOf<T>;
  const T* p;
  const Math* dp;
  T* ds;
  Size t;
  Math scale;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank(), seen = i + 1;
    const T* const probability = p + i * t;
    const Math* const in = dp + i * t;
    T* const out = ds + i * t;
    const Math mean = detail::reduce_lanes<Kokkos::Sum, Math>(
        team, seen, [=](Size j) { return probability[j] * in[j]; });
    const Math factor = scale;
    detail::for_each_lane(Kokkos::TeamVectorRange(team, seen), seen,
                          [=](Size j) { out[j] = factor * probability[j] * (in[j] - mean); });
    const Size hidden = t - seen;
    detail::for_each_lane(Kokkos::TeamVectorRange(team, hidden), hidden,
                          [=](Size j) { out[seen + j] = Math(0); });
  }
};

template <class T>
class Attention {
 public:
  using State = StateOf<T>;

  explicit Attention(const LayerCall<T>& call)
      : call_(call),
        t_(call.layer.positions),
        d_(call.layer.groups.columns),
        scale_(1 / std::sqrt(static_cast<State>(d_))) {}

  void forward() const {
    for_heads([&](Size sample, Size head) {
      const Operands of = operands(sample, head);
      call_.gemm(Trans::no, Trans::no, of.p, of.v, 0, columns(call_.output, sample, head));
    });
  }

  /// dv = p^T dy, dp = dy v^T, dq = ds k, dk = ds^T q.
  void backward() const {
    for_heads([&](Size sample, Size head) {
      const Operands of = operands(sample, head);
      const Matrix<const T> dy = columns(call_.output_gradient, sample, head);
      const auto gradient = [&](Size part) {
        return columns(call_.input_gradients[0], sample, 3 * head + part);
      };
      call_.gemm(Trans::yes, Trans::no, of.p, dy, 0, gradient(2));
      const Matrix<State> dp = square<State>(1);
      call_.gemm(Trans::no, Trans::yes, dy, of.v, 0, dp);
      // ds overwrites dp; with a 16-bit compute type it overwrites the scores.
      const Matrix<T> ds = square<T>(is_half_v<T> ? 0 : 1);
      for_each_row(attention_scores_label, t_, t_,
                   ScoreGradients<T>{of.p.data(), dp.data(), ds.data(), t_, scale_});
      call_.gemm(Trans::no, Trans::no, ds, of.k, 0, gradient(0));
      call_.gemm(Trans::yes, Trans::no, ds, of.q, 0, gradient(1));
    });
  }

 private:
  struct Operands {
    Matrix<const T> q, k, v;
    Matrix<T> p;  ///< probabilities
  };

  template <class F>
  void for_heads(const F& f) const {
    for (Size sample = 0; sample < call_.samples; ++sample)
      for (Size head = 0; head < call_.layer.out / d_; ++head) f(sample, head);
  }

  Operands operands(Size sample, Size head) const {
    const auto part = [&](Size number) {
      return columns(call_.inputs[0], sample, 3 * head + number);
    };
    const Operands of{part(0), part(1), part(2), square<T>(is_half_v<T> ? 2 : 0)};
    const Matrix<State> s = square<State>(0);
    call_.gemm(Trans::no, Trans::yes, of.q, of.k, 0, s);
    for_each_row(attention_softmax_label, t_, t_,
                 CausalSoftmax<T>{s.data(), of.p.data(), t_, scale_});
    return of;
  }

  /// Returns the block (positions, d) of a sample and of the number-th group of d columns.
  template <class E>
  Matrix<E> columns(const Matrix<E>& of, Size sample, Size head) const {
    return block_of(of, {sample * t_, t_}, {head * d_, d_});
  }
  /// Returns a (positions, positions) square of scratch memory. 0: scores, then probabilities; 1:
  /// gradients; 2: probabilities of a 16-bit compute type.
  template <class E>
  Matrix<E> square(Size number) const {
    return alias_matrix(reinterpret_cast<E*>(call_.scratch.data() + number * t_ * t_), t_, t_);
  }

  const LayerCall<T>& call_;
  Size t_, d_;
  State scale_;
};

constexpr LayerRow attention_row{.name = "attention",
                                 .split_layouts = attention_layouts,
                                 .fits = whole_heads,
                                 .mixes_positions = true,
                                 .products = attention_products,
                                 .scratch = attention_scratch,
                                 .reads_inputs = always,
                                 .forward = [](const auto& call) { Attention(call).forward(); },
                                 .backward = [](const auto& call) { Attention(call).backward(); }};

}  // namespace

LayerSpec causal_attention(std::string name, std::string unit, Size qkv, Size heads,
                           Size head_width) {
  LayerSpec layer{&attention_row, std::move(name),        std::move(unit),
                  {qkv},          3 * heads * head_width, heads * head_width};
  layer.groups = {head_width, "heads", "model.transformer.heads", heads};
  return layer;
}

}  // namespace tessera
