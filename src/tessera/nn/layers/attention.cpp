// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/nn/layers/attention_blocks.hpp>
#include <tessera/nn/layers/attention_kernels.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string attention_softmax_label = "tessera::attention_softmax";
const std::string attention_scores_label = "tessera::attention_score_gradients";
const std::string attention_store_label = "tessera::attention_store";

const std::string keys_values_label = "tessera::keys_values";

using detail::AttentionBlock;
using detail::AttentionRuns;
using detail::key_block;
using detail::query_block;

std::vector<Layout> attention_layouts() { return {alike(by_columns, 2)}; }

/// q, k, v and the output of each head are on one rank.
bool whole_heads(const LayerSpec& layer) {
  return layer.in == 3 * layer.out && layer.out % layer.groups.columns == 0;
}

Size heads_of(const LayerSpec& layer) { return layer.out / layer.groups.columns; }

/// The second input has keys and values, which every rank needs whole, at once or in turn.
Layout attention_along_context(const LayerSpec&, ContextAttention attention) {
  if (attention == ContextAttention::all_to_all) return alike(by_columns);
  Layout layout = alike(by_rows, 2);
  if (attention == ContextAttention::ring) return layout;
  layout.inputs[1] = {};
  layout.input_gradients[1] = as_terms;
  return layout;
}

LayerProducts attention_products(const LayerSpec& layer, Size samples) {
  const Size d = layer.groups.columns, heads = samples * heads_of(layer);
  LayerProducts products;
  const auto add = [](std::vector<GemmShape>& all, const GemmShape& one) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const GemmShape& other) {
      return other.m == one.m && other.n == one.n && other.k == one.k;
    });
    same == all.end() ? all.push_back(one) : void(same->times += one.times);
  };
  const auto add_block = [&](const AttentionBlock& block) {
    const Size m = block.queries.count, n = block.keys.count;
    const GemmShape scores{m, n, d, heads}, values{m, d, n, heads}, keys{n, d, m, 2 * heads};
    for (const GemmShape& one : {scores, values}) {
      add(products.forward, one);
      add(products.backward, one);
    }
    add(products.backward, keys);
  };
  for_each_block(AttentionRuns(layer, 1), 0, add_block, [](Range) {});
  return products;
}

/// Returns one exponential function for each score, which takes 4 FLOPs per column of a head in
/// forward; backward repeats it.
PassCount attention_functions(const LayerSpec& layer, Size samples) {
  double flops = 0;
  for (const GemmShape& product : attention_products(layer, samples).forward)
    flops += product.flops();
  const double scores = flops / (4 * static_cast<double>(layer.groups.columns));
  return {scores, scores};
}

/// Returns the elements of a square and of the sums of a head (Attention::square,
/// Attention::key_sums, Attention::query_sums).
Size square_size(Size t) { return std::min(query_block, t) * std::min(key_block, t); }
Size attention_scratch(const LayerSpec& layer, Size) {
  const Size t = std::max(layer.positions, layer.share.total);
  return 3 * square_size(t) + (2 * t + std::min(query_block, t)) * layer.groups.columns;
}

template <class T>
class Attention {
 public:
  using State = StateOf<T>;
  using Scores = detail::ScoreBlock<State>;

  explicit Attention(const LayerCall<T>& call)
      : call_(call),
        runs_(call.layer, call.samples, call.ring.keys_of),
        t_(std::max(call.layer.positions, call.layer.share.total)),
        d_(call.layer.groups.columns),
        has_keys_(call.layer.inputs.size() > 1),
        scale_(1 / std::sqrt(static_cast<State>(d_))) {}

  void forward() const {
    for_heads([&](Size sample, Size head) {
      const auto output = [&](Range queries) { return part(call_.output, head, queries); };
      for_each_block(
          runs_, sample,
          [&](const AttentionBlock& block) {
            const Scores scores = scores_of(head, block);
            const Matrix<T> p = probabilities(block);
            const Matrix<State> sum = query_sums(head, output(block.queries), block.queries);
            const bool is_first = block.is_first && call_.ring.is_first;
            for_each_row(attention_softmax_label, block.queries.count, block.keys.count,
                         detail::AddToSoftmax<T>{scores, p.data(), sum.data(), d_, stride_of(sum),
                                                 is_first});
            call_.gemm(Trans::no, Trans::no, p, value(head, block.keys), is_first ? 0 : 1, sum);
          },
          [&](Range queries) {
            if (!call_.ring.is_last) return;
            const Matrix<T> y = output(queries);
            const Matrix<State> statistics = statistics_of(head, queries);
            store(query_sums(head, y, queries), y, statistics.data(), stride_of(statistics));
          });
    });
  }

  /// dv = p^T dy, dp = dy v^T, dq = ds k, dk = ds^T q.
  void backward() const {
    const auto gradient = [&](Size head, Size number, Range rows) {
      return part(call_.input_gradients[0], 3 * head + number, rows);
    };
    // With one run, the blocks of the last queries overwrite the gradients of the keys, if they see
    // all of them.
    const bool overwrites = runs_.queries.size() == 1 && runs_.keys.size() == 1 &&
                            runs_.queries[0].end() >= runs_.keys[0].end();
    // With keys in an input of their own, those in the first input have no gradient.
    if (call_.ring.is_first && (has_keys_ || !overwrites) && call_.input_gradients[0].size() > 0)
      Kokkos::deep_copy(ExecSpace(), call_.input_gradients[0], T(0));
    if (has_keys_ && !overwrites) Kokkos::deep_copy(ExecSpace(), shared_gradient(), State(0));
    const auto dq_sums = [&](Size head, Range rows) {
      return query_sums(head, gradient(head, 0, rows), rows);
    };
    for_heads([&](Size sample, Size head) {
      if (is_half_v<T> && !has_keys_ && !overwrites)
        for (const Size number : {0, 1}) Kokkos::deep_copy(ExecSpace(), key_sums(number), State(0));
      for_each_block(
          runs_, sample,
          [&](const AttentionBlock& block) {
            const Matrix<const T> dy = part(call_.output_gradient, head, block.queries);
            const auto [p, ds] = score_gradients(head, block, dy);
            const bool is_last = block.queries.end() == runs_.queries.back().rows(sample).end();
            const State adds = overwrites && is_last ? 0 : 1;
            const Matrix<const T> q = part(call_.inputs[0], 3 * head, block.queries);
            call_.gemm(Trans::yes, Trans::no, p, dy, adds, key_gradient(head, 1, block));
            call_.gemm(Trans::yes, Trans::no, ds, q, adds, key_gradient(head, 0, block));
            call_.gemm(Trans::no, Trans::no, ds, key(head, block.keys),
                       block.is_first && call_.ring.is_first ? 0 : 1, dq_sums(head, block.queries));
          },
          [&](Range queries) {
            if (is_half_v<T> && call_.ring.is_last)
              store(dq_sums(head, queries), gradient(head, 0, queries));
          });
      if (is_half_v<T> && !has_keys_)
        for (const detail::PositionRun& run : runs_.keys)
          for (const Size number : {0, 1})
            store(rows_of(key_sums(number), {run.position, run.count}),
                  gradient(head, 1 + number, run.rows(sample)));
    });
  }

 private:
  template <class F>
  void for_heads(const F& f) const {
    for (Size sample = 0; sample < call_.samples; ++sample)
      for (Size head = 0; head < heads_of(call_.layer); ++head) f(sample, head);
  }

  /// Computes q k^T of a block in square 0.
  Scores scores_of(Size head, const AttentionBlock& block) const {
    const Matrix<State> s = square<State>(0, block);
    call_.gemm(Trans::no, Trans::yes, part(call_.inputs[0], 3 * head, block.queries),
               key(head, block.keys), 0, s);
    const Matrix<State> statistics = statistics_of(head, block.queries);
    return {s.data(), block.keys.count,  block.seen,
            scale_,   statistics.data(), stride_of(statistics)};
  }

  /// Returns p and the gradients of the scores.
  std::pair<Matrix<const T>, Matrix<const T>> score_gradients(Size head,
                                                              const AttentionBlock& block,
                                                              const Matrix<const T>& dy) const {
    const Scores scores = scores_of(head, block);
    const Matrix<State> dp = square<State>(1, block);
    call_.gemm(Trans::no, Trans::yes, dy, value(head, block.keys), 0, dp);
    const Matrix<T> p = probabilities(block);
    Matrix<T> ds = square<T>(1, block);  // overwrites dp
    if constexpr (is_half_v<T>)
      ds = alias_matrix(p.data() + square_size(t_), block.queries.count, block.keys.count);
    const Matrix<const T> y = part(call_.output, head, block.queries);
    for_each_row(attention_scores_label, block.queries.count, block.keys.count,
                 detail::ScoreGradients<T>{scores, dp.data(), p.data(), ds.data(), y.data(),
                                           dy.data(), d_, stride_of(y)});
    return {p, ds};
  }

  /// Writes unrounded sums to their place, divided by the sums of the softmax if there are
  /// statistics.
  void store(const Matrix<State>& sums, const Matrix<T>& to, const State* statistics = nullptr,
             Size stride = 0) const {
    for_each_row(attention_store_label, static_cast<Size>(to.extent(0)), d_,
                 detail::StoreRows<T>{sums.data(), stride_of(sums), statistics, stride, to.data(),
                                      stride_of(to), d_});
  }

  template <class E>
  static Size stride_of(const Matrix<E>& m) {
    return static_cast<Size>(m.stride_0());
  }
  /// Returns rows of the number-th group of d columns.
  template <class E>
  Matrix<E> part(const Matrix<E>& of, Size number, Range rows) const {
    return block_of(of, rows, {number * d_, d_});
  }
  Matrix<const T> key(Size head, Range rows) const {
    return has_keys_ ? part(call_.inputs[1], 2 * head, rows)
                     : part(call_.inputs[0], 3 * head + 1, rows);
  }
  Matrix<const T> value(Size head, Range rows) const {
    return has_keys_ ? part(call_.inputs[1], 2 * head + 1, rows)
                     : part(call_.inputs[0], 3 * head + 2, rows);
  }
  /// Returns the largest scores and sums of the softmax.
  Matrix<State> statistics_of(Size head, Range queries) const {
    return block_of(call_.saved, queries, {2 * head, 2});
  }

  // Unrounded sums of a head: in the gradients and outputs themselves or, with a 16-bit compute
  // type, in scratch memory. A ring keeps those of queries between its parts.
  Matrix<State> query_sums(Size head, const Matrix<T>& matrix, Range queries) const {
    if constexpr (!is_half_v<T>)
      return matrix;
    else if (call_.output_terms.data() != nullptr)
      return part(call_.output_terms, head, queries);
    else
      return alias_matrix(call_.scratch.data() + 3 * square_size(t_) + 2 * t_ * d_,
                          static_cast<Size>(matrix.extent(0)), d_);
  }
  Matrix<State> key_sums(Size number) const {  // by position
    return alias_matrix(call_.scratch.data() + 3 * square_size(t_) + number * t_ * d_, t_, d_);
  }
  /// Returns the gradients of keys (number 0) or values (1).
  Matrix<State> key_gradient(Size head, Size number, const AttentionBlock& block) const {
    if (has_keys_) return part(shared_gradient(), 2 * head + number, block.keys);
    if constexpr (is_half_v<T>)
      return rows_of(key_sums(number), {block.key_position, block.keys.count});
    else
      return part(call_.input_gradients[0], 3 * head + 1 + number, block.keys);
  }
  /// Returns the gradient of the second input: a term of a sum.
  Matrix<State> shared_gradient() const {
    if constexpr (!is_half_v<T>)
      if (call_.input_gradient_terms[1].data() == nullptr) return call_.input_gradients[1];
    return call_.input_gradient_terms[1];
  }
  /// Returns one of three blocks of scratch memory. 0: scores, then probabilities; 1: gradients; 2:
  /// probabilities and gradients of a 16-bit compute type.
  template <class E>
  Matrix<E> square(Size number, const AttentionBlock& block) const {
    return alias_matrix(reinterpret_cast<E*>(call_.scratch.data() + number * square_size(t_)),
                        block.queries.count, block.keys.count);
  }
  Matrix<T> probabilities(const AttentionBlock& block) const {
    return square<T>(is_half_v<T> ? 2 : 0, block);
  }

  const LayerCall<T>& call_;
  AttentionRuns runs_;
  Size t_, d_;
  bool has_keys_;
  State scale_;
};

/// Copies the keys and values (rows, 2 heads d) out of q, k and v, or their gradients back.
template <class T>
void copy_keys_values(const Matrix<const T>& from, const Matrix<T>& to, Size d, bool back,
                      bool adds) {
  const T* const in = from.data();
  T* const out = to.data();
  for_each(
      keys_values_label, static_cast<Size>(to.size()), KOKKOS_LAMBDA(Size i) {
        if (!back) {
          out[i] = in[i / (2 * d) * (3 * d) + d + i % (2 * d)];
          return;
        }
        const Size at = i % (3 * d) - d;
        const StateOf<T> old = adds ? StateOf<T>(out[i]) : 0;
        out[i] = at < 0 ? old : old + static_cast<StateOf<T>>(in[i / (3 * d) * (2 * d) + at]);
      });
}

constexpr LayerRow keys_values_row{
    .name = "keys_values",
    .split_layouts = [] { return std::vector<Layout>{alike(by_columns)}; },
    .fits =
        [](const LayerSpec& layer) {
          return 2 * layer.in == 3 * layer.out && layer.out % layer.groups.columns == 0;
        },
    .adds_gradient = true,
    .forward =
        [](const auto& call) {
          copy_keys_values(call.inputs[0], call.output, call.layer.groups.columns / 2, false,
                           false);
        },
    .backward =
        [](const auto& call) {
          copy_keys_values(call.output_gradient, call.input_gradients[0],
                           call.layer.groups.columns / 2, true, call.add_input_gradients);
        }};

LayerSpec keys_values(const LayerSpec& attention) {
  LayerSpec layer{&keys_values_row, attention.name + "/keys_values",
                  attention.unit,   attention.inputs,
                  attention.in,     2 * attention.out};
  layer.in_positions = layer.positions = attention.positions;
  layer.groups = attention.groups;
  layer.groups.columns *= 2;
  return layer;
}

constexpr LayerRow attention_row{
    .name = "attention",
    .split_layouts = attention_layouts,
    .fits = whole_heads,
    .mixes_positions = true,
    .along_context = attention_along_context,
    .shared_rows = keys_values,
    .products = attention_products,
    .functions = attention_functions,
    .scratch = attention_scratch,
    .reads_inputs = always,
    .reads_output = always,
    .saved_columns = [](const LayerSpec& layer) { return 2 * heads_of(layer); },
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
