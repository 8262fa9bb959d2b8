// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/attention.hpp>
#include <tessera/nn/exponential.hpp>
#include <tessera/nn/layer_call.hpp>

namespace tessera {
namespace {

// Made once: a launch then needs no memory for its label.
const std::string attention_take_label = "tessera::attention_take_head";
const std::string attention_put_label = "tessera::attention_put_head";
const std::string attention_softmax_label = "tessera::attention_softmax";
const std::string attention_scores_label = "tessera::attention_score_gradients";

std::vector<Layout> attention_layouts(const LayerSpec&) {
  std::vector<Layout> all;
  for (const Placement p : {Placement::replicate(), Placement::shard(1)})
    all.push_back({{}, {p}, p, p, {p}, {}});
  return all;
}

LayerProducts attention_products(const LayerSpec& layer, Size samples) {
  const Size t = layer.positions, d = layer.group, heads = samples * (layer.out / d);
  const GemmShape scores{t, t, d, heads}, values{t, d, t, heads};
  return {{scores, values}, {values, scores, values, values}};
}

/// Two squares of scores in the state type and one in the compute type; seven matrices of a head.
Size attention_scratch(const LayerSpec& layer) {
  return 3 * layer.positions * layer.positions + 7 * layer.positions * layer.group;
}

/// Memory of one head, all of it contiguous: products then need not know where it comes from.
template <class T>
class HeadScratch {
 public:
  using State = StateOf<T>;
  explicit HeadScratch(const LayerCall<T>& call)
      : at_(call.scratch.data()), t_(call.layer.positions), d_(call.layer.group) {}
  Matrix<State> square() { return alias_matrix(take(t_ * t_), t_, t_); }
  Matrix<T> short_square() { return alias_matrix(reinterpret_cast<T*>(take(t_ * t_)), t_, t_); }
  Matrix<T> tall() { return alias_matrix(reinterpret_cast<T*>(take(t_ * d_)), t_, d_); }

 private:
  State* take(Size n) { return std::exchange(at_, at_ + n); }
  State* at_;
  Size t_, d_;
};

/// Columns of one head of one sample.
template <class T>
struct HeadColumns {
  T* data;
  Size stride;
};
template <class T>
HeadColumns<T> columns_of(const Matrix<T>& of, Size positions, Size sample, Size first) {
  const Size stride = static_cast<Size>(of.extent(1));
  return {of.data() + sample * positions * stride + first, stride};
}

template <class T>
void take_head(const HeadColumns<const T>& from, const Matrix<T>& to) {
  const T* const in = from.data;
  T* const out = to.data();
  const Size stride = from.stride, width = static_cast<Size>(to.extent(1));
  for_each(
      attention_take_label, to.span(),
      KOKKOS_LAMBDA(Size i) { out[i] = in[i / width * stride + i % width]; });
}

template <class T>
void put_head(const Matrix<T>& from, const HeadColumns<T>& to) {
  const T* const in = from.data();
  T* const out = to.data;
  const Size stride = to.stride, width = static_cast<Size>(from.extent(1));
  for_each(
      attention_put_label, from.span(),
      KOKKOS_LAMBDA(Size i) { out[i / width * stride + i % width] = in[i]; });
}

/// p = softmax(scale s) of each row i up to column i, and 0 behind it; p may be s.
template <class T>
struct CausalSoftmax {
  using Math = StateOf<T>;
  const Math* s;
  T* p;
  Size t;
  Math scale;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank(), seen = i + 1;
    const Math* const in = s + i * t;
    T* const out = p + i * t;
    Math largest, sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, seen),
        [=](Size j, Math& most) { most = in[j] > most ? in[j] : most; },
        Kokkos::Max<Math>(largest));
    const Math factor = scale;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, seen),
        [=](Size j, Math& part) { part += detail::exp_of_nonpositive(factor * (in[j] - largest)); },
        sum);
    const Math inverse = Math(1) / sum;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, t), [=](Size j) {
      out[j] =
          j < seen ? inverse * detail::exp_of_nonpositive(factor * (in[j] - largest)) : Math(0);
    });
  }
};

/// ds = scale p (dp - sum_j p dp), row by row; ds may be dp.
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
    Math mean = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, seen),
        [=](Size j, Math& part) { part += probability[j] * in[j]; }, mean);
    const Math factor = scale;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, t), [=](Size j) {
      out[j] = j < seen ? factor * probability[j] * (in[j] - mean) : Math(0);
    });
  }
};

/// Scores and probabilities may share memory if they have one type.
template <class T>
Matrix<T> in_place_or(const Matrix<StateOf<T>>& square, const Matrix<T>& other) {
  if constexpr (is_short_v<T>)
    return other;
  else
    return square;
}

template <class T>
class Attention {
 public:
  explicit Attention(const LayerCall<T>& call)
      : call_(call),
        t_(call.layer.positions),
        d_(call.layer.group),
        scale_(1 / std::sqrt(static_cast<StateOf<T>>(d_))) {}

  void forward() const {
    for_heads([&](Size sample, Size head, HeadScratch<T>& scratch) {
      const Operands of = operands(sample, head, scratch);
      const Matrix<T> y = scratch.tall();
      call_.gemm(Trans::no, Trans::no, of.p, of.v, 0, y);
      put_head(y, columns_of(call_.output, t_, sample, head * d_));
    });
  }

  /// dv = p^T dy, dp = dy v^T, dq = ds k, dk = ds^T q.
  void backward() const {
    for_heads([&](Size sample, Size head, HeadScratch<T>& scratch) {
      const Operands of = operands(sample, head, scratch);
      const Matrix<T> dy = scratch.tall(), d = scratch.tall();
      take_head(columns_of(call_.output_gradient, t_, sample, head * d_), dy);
      const auto gradient = [&](Trans trans, const Matrix<T>& a, const Matrix<T>& b, Size part) {
        call_.gemm(trans, Trans::no, a, b, 0, d);
        put_head(d, columns_of(call_.input_gradients[0], t_, sample, (3 * head + part) * d_));
      };
      gradient(Trans::yes, of.p, dy, 2);
      const Matrix<StateOf<T>> dp = scratch.square();
      call_.gemm(Trans::no, Trans::yes, dy, of.v, 0, dp);
      const Matrix<T> ds =
          in_place_or<T>(dp, alias_matrix(reinterpret_cast<T*>(of.s.data()), t_, t_));
      for_each_row(attention_scores_label, t_, t_,
                   ScoreGradients<T>{of.p.data(), dp.data(), ds.data(), t_, scale_});
      gradient(Trans::no, ds, of.k, 0);
      gradient(Trans::yes, ds, of.q, 1);
    });
  }

 private:
  struct Operands {
    Matrix<T> q, k, v;
    Matrix<StateOf<T>> s;  ///< of the scores, which p may have taken
    Matrix<T> p;           ///< probabilities
  };

  template <class F>
  void for_heads(const F& f) const {
    for (Size sample = 0; sample < call_.samples; ++sample)
      for (Size head = 0; head < call_.layer.out / d_; ++head) {
        HeadScratch<T> scratch(call_);
        f(sample, head, scratch);
      }
  }

  Operands operands(Size sample, Size head, HeadScratch<T>& scratch) const {
    const auto part = [&](Size number) {
      const Matrix<T> columns = scratch.tall();
      take_head(columns_of(call_.inputs[0], t_, sample, (3 * head + number) * d_), columns);
      return columns;
    };
    Operands of{part(0), part(1), part(2), scratch.square(), {}};
    call_.gemm(Trans::no, Trans::yes, of.q, of.k, 0, of.s);
    of.p = in_place_or<T>(of.s, scratch.short_square());
    for_each_row(attention_softmax_label, t_, t_,
                 CausalSoftmax<T>{of.s.data(), of.p.data(), t_, scale_});
    return of;
  }

  const LayerCall<T>& call_;
  Size t_, d_;
  StateOf<T> scale_;
};

constexpr LayerRow attention_row{.name = "attention",
                                 .layouts = attention_layouts,
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
  layer.group = head_width;
  return layer;
}

}  // namespace tessera
