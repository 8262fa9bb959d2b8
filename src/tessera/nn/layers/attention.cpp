// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/base/share_items.hpp>
#include <tessera/nn/layers/attention_blocks.hpp>
#include <tessera/nn/layers/attention_kernels.hpp>
#include <tessera/nn/layers/attention_work.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

using detail::AttentionBatches;
using detail::AttentionBlock;
using detail::AttentionRows;
using detail::HeadGroup;
using detail::heads_of;
using detail::positions_of;
using detail::query_rows;
using detail::SampleRows;
using detail::square_size;

/// The matrix of the first of some heads, and the elements from one head's to the next.
template <class E>
struct Heads {
  Matrix<E> first;
  Size next;

  detail::HeadRows<E> rows() const {
    return {first.data(), static_cast<Size>(first.stride_0()), next};
  }
};

/// Adds `from` to `to`.
template <class State>
void join(const Vector<State>& to, const Vector<State>& from) {
  for_each(
      "tessera::attention_join"_label, static_cast<Size>(to.extent(0)),
      KOKKOS_LAMBDA(Size i) { to(i) += from(i); });
}

/// Multiplies and makes the softmax for some heads at once.
template <class T>
class Attention {
 public:
  using State = StateOf<T>;
  using Scores = detail::ScoreBlock<State>;

  explicit Attention(const LayerCall<T>& call)
      : call_(call),
        rows_(call.layer, call.samples, call.ring.keys_of),
        t_(positions_of(call.layer)),
        d_(call.layer.size("d")),
        batches_(call.layer, call.samples),
        at_once_(batches_.at_once),
        square_(square_size(call.layer)),
        columns_(call.layer.size("n")),
        sharing_(call.layer.size("u")),
        has_keys_(call.layer.inputs.size() > 1),
        in_tree_(rows_.queries.share.blocks > 1),
        sums_keys_(in_tree_ || (is_half_v<T> && (!has_keys_ || !has_terms()))),
        scale_(1 / std::sqrt(static_cast<State>(d_))),
        scratch_(call.scratch.data()) {}

  void forward() const {
    for_heads([](const Attention& own, const HeadGroup& heads) { own.forward(heads); });
  }

  void backward() const {
    // With keys in an input of their own, those in the first input have no gradient.
    if (call_.ring.is_first && call_.input_gradients[0].size() > 0)
      Kokkos::deep_copy(ExecSpace(), call_.input_gradients[0], T(0));
    if (has_keys_ && !sums_keys_) Kokkos::deep_copy(ExecSpace(), shared_gradient(), State(0));
    for_heads([](const Attention& own, const HeadGroup& heads) { own.backward(heads); });
  }

 private:
  void forward(const HeadGroup& heads) const {
    const auto output = [&](const SampleRows& queries) {
      return part(call_.output, 1, 0, heads, queries);
    };
    for_each_block(
        rows_, heads.sample,
        [&](const AttentionBlock& block) {
          const Scores scores = scores_of(heads, block);
          const Heads<T> p = probabilities(block);
          const Heads<State> sum = query_sums(heads, output(block.queries), block.queries);
          const bool is_first = block.is_first && call_.ring.is_first;
          detail::add_to_softmax<T>(scores, p.rows(), sum.rows(), d_, is_first);
          multiply(heads, Trans::no, Trans::no, p, key_or_value(heads, 1, block.keys),
                   is_first ? 0 : 1, sum);
        },
        [&](const SampleRows& queries) {
          if (!call_.ring.is_last) return;
          const Heads<T> y = output(queries);
          store(heads, query_sums(heads, y, queries), y, statistics_of(heads, queries).rows());
        },
        [](Size) {});
  }

  /// dv = p^T dy, dp = dy v^T, dq = ds k, dk = ds^T q.
  void backward(const HeadGroup& heads) const {
    const auto gradient = [&](Size number, const SampleRows& rows) {
      return part(call_.input_gradients[0], columns_, number, heads, rows);
    };
    const auto dq_sums = [&](const SampleRows& rows) {
      return query_sums(heads, gradient(0, rows), rows);
    };
    if (sums_keys_) begin_key_sums(0);
    for_each_block(
        rows_, heads.sample,
        [&](const AttentionBlock& block) {
          const Heads<const T> dy = part(call_.output_gradient, 1, 0, heads, block.queries);
          const auto [p, ds] = score_gradients(heads, block, dy);
          add_key_gradients(heads, block, p, ds);
          multiply(heads, Trans::no, Trans::no, ds, key_or_value(heads, 0, block.keys),
                   block.is_first && call_.ring.is_first ? 0 : 1, dq_sums(block.queries));
        },
        [&](const SampleRows& queries) {
          if (is_half_v<T> && call_.ring.is_last)
            store(heads, dq_sums(queries), gradient(0, queries));
        },
        [&](Size block) {
          if (!in_tree_) return;
          join_rows(0, {block, 1},
                    [&](Size lower, Size upper) { join(key_node(lower), key_node(upper)); });
          if (block + 1 < rows_.queries.blocks().count) begin_key_sums(nodes_in({0, block + 1}));
        });
    node_ = 0;
    for (Size i = 0; sums_keys_ && i < rows_.keys.runs(); ++i) {
      const SampleRows keys = rows_.keys.run(heads.sample, i);
      for (const Size number : {0, 1}) {
        const Heads<State> sums = key_sums(number, {keys.position, keys.count});
        if (!has_keys_)
          store(key_heads(heads), sums, gradient(1 + number, keys));
        else if (has_terms())
          store(key_heads(heads), sums,
                key_part(call_.input_gradient_terms[1], number, heads, keys));
        else
          store(key_heads(heads), sums, key_part(call_.input_gradients[1], number, heads, keys));
      }
    }
  }

  /// Returns true if the gradient of the second input stays a term of a sum.
  bool has_terms() const { return call_.input_gradient_terms[1].data() != nullptr; }

  // The gradients of keys and values are sums over blocks of queries: rows of a tree.
  Vector<State> key_node(Size row) const {
    const Size size = 2 * at_once_ * t_ * d_;
    const Size first = at_once_ * (3 * square_ + (row == 0 ? 0 : query_rows(call_.layer) * d_));
    return alias_vector(scratch_ + first + row * size, size);
  }
  /// Adds the next gradients to this row.
  void begin_key_sums(Size row) const {
    node_ = row;
    set_minus_zero(key_node(row));
  }

  /// Calls f(attention, heads) for all groups of heads, which threads share.
  template <class F>
  void for_heads(const F& f) const {
    const Size groups = batches_.groups,
               of_place = static_cast<Size>(call_.scratch.size()) / batches_.places;
    const auto run = [&](const Range& some, Size place) {
      Attention own(*this);
      own.scratch_ += place * of_place;
      for (Size i = some.begin; i < some.end(); ++i) f(own, batches_.group(i));
    };
    if (kernel_threads() == 1 || !call_.gemm.is_reentrant() || !occupies_threads(groups))
      return run({0, groups}, 0);
    const Size scores = call_.samples * heads_of(call_.layer) * call_.layer.positions() * t_;
    share_items("tessera::attention"_label, groups, batches_.places, scores, run);
  }

  template <class A, class B, class C>
  void multiply(const HeadGroup& heads, Trans trans_a, Trans trans_b, const Heads<A>& a,
                const Heads<B>& b, State beta, const Heads<C>& c) const {
    call_.gemm.multiply_batch(trans_a, trans_b, a.first, b.first, beta, c.first,
                              {heads.count, a.next, b.next, c.next});
  }

  /// Computes q k^T of a block in squares 0.
  Scores scores_of(const HeadGroup& heads, const AttentionBlock& block) const {
    const Heads<State> s = squares<State>(0, block);
    multiply(heads, Trans::no, Trans::yes, part(call_.inputs[0], columns_, 0, heads, block.queries),
             key_or_value(heads, 0, block.keys), 0, s);
    return {s.rows(),
            heads.count,
            block.queries.count,
            block.keys.count,
            block.seen,
            scale_,
            statistics_of(heads, block.queries).rows()};
  }

  /// Returns p and the gradients of the scores.
  std::pair<Heads<T>, Heads<T>> score_gradients(const HeadGroup& heads, const AttentionBlock& block,
                                                const Heads<const T>& dy) const {
    const Scores scores = scores_of(heads, block);
    const Heads<State> dp = squares<State>(1, block);
    multiply(heads, Trans::no, Trans::yes, dy, key_or_value(heads, 1, block.keys), 0, dp);
    const Heads<T> p = probabilities(block);
    Heads<T> ds = squares<T>(1, block);  // overwrites dp
    if constexpr (is_half_v<T>)
      ds.first = alias_matrix(p.first.data() + at_once_ * square_, scores.rows, scores.cols);
    const Heads<const T> y = part(Matrix<const T>(call_.output), 1, 0, heads, block.queries);
    detail::score_gradients<T>(scores, dp.rows(), p.rows(), ds.rows(), y.rows(), dy.rows(), d_);
    return {p, ds};
  }

  /// dv += p^T dy, dk += ds^T q. Heads that share a key add to its gradient in turn.
  void add_key_gradients(const HeadGroup& heads, const AttentionBlock& block, const Heads<T>& p,
                         const Heads<T>& ds) const {
    const auto add = [&](const HeadGroup& some, Size before) {
      const auto of_some = [&](const Heads<T>& all) {
        return Heads<T>{alias_matrix(all.first.data() + before * all.next, block.queries.count,
                                     block.keys.count),
                        all.next};
      };
      multiply(some, Trans::yes, Trans::no, of_some(p),
               part(call_.output_gradient, 1, 0, some, block.queries), 1,
               key_gradient(some, 1, block));
      multiply(some, Trans::yes, Trans::no, of_some(ds),
               part(call_.inputs[0], columns_, 0, some, block.queries), 1,
               key_gradient(some, 0, block));
    };
    if (sharing_ == 1) return add(heads, 0);
    for (Size i = 0; i < heads.count; ++i)
      add(HeadGroup{heads.sample, heads.head + i, 1, false}, i);
  }

  /// Writes unrounded sums to their place, divided by the sums of the softmax if there are
  /// statistics.
  template <class E>
  void store(const HeadGroup& heads, const Heads<State>& sums, const Heads<E>& to,
             const detail::HeadRows<State>& statistics = {}) const {
    detail::store_rows<E>(heads.count, static_cast<Size>(to.first.extent(0)), d_, sums.rows(),
                          statistics, to.rows());
  }

  /// Returns the `number`-th of the `of_head` groups of d columns that each head has.
  template <class E>
  Heads<E> part(const Matrix<E>& of, Size of_head, Size number, const HeadGroup& heads,
                const SampleRows& rows) const {
    return {block_of(of, rows, {(of_head * heads.head + number) * d_, d_}),
            heads.next(of, rows, of_head * d_)};
  }
  /// Returns the heads of the keys: one, if heads share it.
  HeadGroup key_heads(const HeadGroup& heads) const {
    if (sharing_ == 1) return heads;
    return {heads.sample, heads.head / sharing_, 1, false};
  }
  /// Returns the keys (number 0) or values (1) in a matrix of them.
  template <class E>
  Heads<E> key_part(const Matrix<E>& of, Size number, const HeadGroup& heads,
                    const SampleRows& rows) const {
    Heads<E> keys = part(of, 2, number, key_heads(heads), rows);
    if (sharing_ > 1) keys.next = 0;
    return keys;
  }
  Heads<const T> key_or_value(const HeadGroup& heads, Size number, const SampleRows& rows) const {
    return has_keys_ ? key_part(call_.inputs[1], number, heads, rows)
                     : part(call_.inputs[0], columns_, 1 + number, heads, rows);
  }
  /// Returns the largest scores and sums of the softmax.
  Heads<State> statistics_of(const HeadGroup& heads, const SampleRows& queries) const {
    return {block_of(call_.saved, queries, {2 * heads.head, 2}),
            heads.next(call_.saved, queries, 2)};
  }

  // Unrounded sums: in the gradients and outputs themselves or, with a 16-bit compute type, in
  // scratch memory. A ring keeps those of queries between its parts.
  Heads<State> query_sums(const HeadGroup& heads, const Heads<T>& of,
                          const SampleRows& queries) const {
    if constexpr (!is_half_v<T>)
      return of;
    else if (call_.output_terms.data() != nullptr)
      return part(call_.output_terms, 1, 0, heads, queries);
    else
      return {alias_matrix(key_node(0).data() + 2 * at_once_ * t_ * d_, queries.count, d_),
              query_rows(call_.layer) * d_};
  }
  Heads<State> key_sums(Size number, Range positions) const {
    State* const first = key_node(node_).data() + at_once_ * number * t_ * d_;
    return {alias_matrix(first + positions.begin * d_, positions.count, d_), t_ * d_};
  }
  /// Returns the gradients of keys (number 0) or values (1).
  Heads<State> key_gradient(const HeadGroup& heads, Size number,
                            const AttentionBlock& block) const {
    if (sums_keys_) return key_sums(number, {block.keys.position, block.keys.count});
    if (has_keys_) return key_part(shared_gradient(), number, heads, block.keys);
    if constexpr (is_half_v<T>)
      return {};  // has no such gradient
    else
      return part(call_.input_gradients[0], columns_, 1 + number, heads, block.keys);
  }
  /// Returns the gradient of the second input: a term of a sum.
  Matrix<State> shared_gradient() const {
    if constexpr (!is_half_v<T>)
      if (!has_terms()) return call_.input_gradients[1];
    return call_.input_gradient_terms[1];
  }
  /// Returns one of three blocks of scratch memory for each head. 0: scores, then probabilities; 1:
  /// gradients; 2: probabilities and gradients of a 16-bit compute type.
  template <class E>
  Heads<E> squares(Size number, const AttentionBlock& block) const {
    return {alias_matrix(reinterpret_cast<E*>(scratch_ + number * at_once_ * square_),
                         block.queries.count, block.keys.count),
            square_};
  }
  Heads<T> probabilities(const AttentionBlock& block) const {
    return squares<T>(is_half_v<T> ? 2 : 0, block);
  }

  const LayerCall<T>& call_;
  AttentionRows rows_;
  Size t_, d_;
  AttentionBatches batches_;
  Size at_once_, square_;
  Size columns_;    ///< groups of d columns that a head has in the first input: q, or q, k and v
  Size sharing_;    ///< heads that share keys and values
  bool has_keys_;   ///< in an input of their own
  bool in_tree_;    ///< sums over blocks of queries have a fixed order
  bool sums_keys_;  ///< in scratch memory
  mutable Size node_ = 0;
  State scale_;
  State* scratch_;  ///< of the groups of heads of one thread
};

constexpr LayerKind attention_kind{
    .name = "attention",
    .expression = {.inputs = {{"sp,hund"}, {"st,hrd"}},
                   .output = "sp,hud",
                   .whole = "tunrd",
                   .streamed = "t"},
    .products = detail::attention_products,
    .functions = detail::attention_functions,
    .scratch = detail::attention_scratch,
    .reads_inputs = always,
    .reads_output = always,
    .saved_columns = [](const LayerSpec& layer) { return 2 * heads_of(layer); },
    .forward = [](const auto& call) { Attention(call).forward(); },
    .backward = [](const auto& call) { Attention(call).backward(); }};

}  // namespace

LayerSpec causal_attention(std::string name, std::string unit, Size qkv, Size heads,
                           Size head_width) {
  LayerSpec layer{&attention_kind,
                  std::move(name),
                  std::move(unit),
                  {qkv},
                  {{'h', heads}, {'u', 1}, {'n', 3}, {'r', 2}, {'d', head_width}}};
  layer.groups = {"heads", "model.transformer.heads", heads};
  return layer;
}

LayerSpec grouped_attention(std::string name, std::string unit, Size queries, Size keys_values,
                            Size heads, Size key_heads, Size head_width, Size positions) {
  LayerSpec layer =
      causal_attention(std::move(name), std::move(unit), queries, key_heads, head_width);
  layer.inputs.push_back(keys_values);
  layer.sizes.at('n') = 1;
  layer.sizes.at('u') = heads / key_heads;
  layer.sizes.emplace('t', positions);
  layer.groups = {"key heads", "model.transformer.kv_heads", key_heads, true};
  return layer;
}

}  // namespace tessera
