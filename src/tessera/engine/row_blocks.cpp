// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/engine/row_blocks.hpp>
#include <tessera/nn/layers/shared_rows.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
namespace {

/// Copies `from` to `to`, on a host without a launch.
template <class T>
void copy_elements(const Vector<const T>& from, const Vector<T>& to) {
  if constexpr (on_host)
    std::copy_n(from.data(), from.extent(0), to.data());
  else
    Kokkos::deep_copy(ExecSpace(), to, from);
}

/// Returns the call without any gradient.
template <class T>
LayerCall<T> without_gradients(const LayerCall<T>& call) {
  LayerCall<T> of = call;
  of.add_parameter_gradients = false;
  of.parameter_gradients = {};
  of.input_gradients = {}, of.input_gradient_terms = {};
  return of;
}

/// Runs backward on those rows of `whole` that for_each_part(f) tells by calls f(Range). Rows of
/// several parts are copied to `memory`, for ScratchPlan::gathered_rows elements. Returns false if
/// there are none.
template <class T, class F>
bool backward_on(const F& for_each_part, const LayerCall<T>& whole, LayerCall<T>& some,
                 const Vector<StateOf<T>>& memory) {
  Size parts = 0, rows = 0;
  Range last;
  for_each_part([&](Range part) { ++parts, rows += part.count, last = part; });
  if (parts == 0) return false;
  StateOf<T>* next = memory.data();
  const auto take = [&](auto& to, const auto& matrix) {
    using Element = typename std::decay_t<decltype(matrix)>::non_const_value_type;
    if (matrix.extent(0) == 0) return;
    if (parts == 1) return void(to = rows_of(matrix, last));
    const Size columns = static_cast<Size>(matrix.extent(1));
    auto* const copies = reinterpret_cast<Element*>(next);
    Size before = 0;
    for_each_part([&](Range part) {
      copy_elements<Element>(
          Vector<const Element>(matrix.data() + part.begin * columns, part.count * columns),
          alias_vector(copies + before * columns, part.count * columns));
      before += part.count;
    });
    to = alias_matrix(copies, rows, columns);
    next += rows * columns;
  };
  for (std::size_t i = 0; i < max_layer_inputs; ++i) take(some.inputs[i], whole.inputs[i]);
  take(some.output, whole.output), take(some.saved, whole.saved);
  take(some.output_gradient, whole.output_gradient);
  if (whole.batch.x.extent(0) == whole.output_gradient.extent(0)) take(some.batch.x, whole.batch.x);
  tessera::backward(some);
  return true;
}

}  // namespace

template <class T>
RowBlocks<T>::RowBlocks(const Plan& plan, Size rank)
    : over_context_(plan.input.sums_positions_first()),
      layers_(plan.placements.size()),
      nodes_(allocate_vector<State>("tessera::gradient_nodes",
                                    plan_scratch(plan, rank).gradient_nodes)),
      gathered_(allocate_vector<State>("tessera::gathered_rows",
                                       plan_scratch(plan, rank).gathered_rows)) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const LayerSpec& spec = plan.input.model.layers[l];
    Layer& layer = layers_[l];
    layer.split = gradient_blocks(plan.input, spec, plan.placements[l], rank);
    layer.elements = gradient_elements(plan.stage(rank).parameters, spec, static_cast<Size>(l));
    for (std::size_t p = 0; p < spec.parameters.size(); ++p)
      for (const char index : spec.kind->expression.parameters[p].indices)
        if (dimension_of(index) == "positions") layer.by_position = static_cast<int>(p);
    layer.needs_samples = spec.kind->expression.whole.find('p') != std::string_view::npos;
  }
}

/// Returns a gradient's part of a row of nodes.
template <class T>
auto RowBlocks<T>::gradient(Size row, std::size_t p) const -> Vector<State> {
  const Vector<State>& sum = gradients_[p];
  if (sum.data() == nullptr || (row == 0 && in_place_)) return sum;
  const Size first = (first_row_ + row - (in_place_ ? 1 : 0)) * elements_;
  return alias_vector(nodes_.data() + first + (sum.data() - gradients_[0].data()),
                      static_cast<Size>(sum.extent(0)));
}

template <class T>
void RowBlocks<T>::add(Size to, Size from) const {
  for (std::size_t p = 0; p < max_layer_parameters; ++p)
    if (gradients_[p].data() != nullptr && static_cast<int>(p) != by_position_)
      accumulate<State>(Vector<const State>(gradient(from, p)), gradient(to, p));
}

template <class T>
void RowBlocks<T>::backward(Size index, const LayerCall<T>& call, Size stack, Size stacks) {
  const Layer& layer = layers_[index];
  gradients_ = call.parameter_gradients;
  rows_ = std::max<Size>(1, layer.split.blocks_of(layer.split.part).count);
  first_row_ = over_context_ ? stack * rows_ : 0;
  elements_ = layer.elements, by_position_ = layer.by_position;
  stacks_.resize(stacks), stacks_[stack] = gradients_;
  const bool in_blocks = (layer.split.blocks > 1 || call.layer.share.has_blocks()) &&
                         gradients_[0].data() != nullptr && !layer.needs_samples;
  in_place_ = !in_blocks || (rows_ == 1 && (stacks == 1 || !over_context_));
  if (!in_blocks) return tessera::backward(call);
  if (by_position_ >= 0) sum_samples(call);
  for (Size m = 0; m < rows_; ++m) sum_positions(layer.split, call, m);
  if (call.wants_input_gradients()) {  // last, for it may overwrite the gradient of the output
    LayerCall<T> of_inputs = call;
    of_inputs.parameter_gradients = {};
    tessera::backward(of_inputs);
  }
  if (!over_context_) finish();
}

/// Runs the layer for the parameter with an index of positions, whose gradient has no tree.
template <class T>
void RowBlocks<T>::sum_samples(const LayerCall<T>& call) const {
  LayerCall<T> of_samples = without_gradients(call);
  const auto p = static_cast<std::size_t>(by_position_);
  of_samples.parameter_gradients[p] = gradient(0, p);
  tessera::backward(of_samples);
}

/// Runs the layer on the rank's m-th block of rows or heads, one block of positions after another,
/// and adds up their sums in row m of the nodes.
template <class T>
void RowBlocks<T>::sum_positions(const SplitPart& split, const LayerCall<T>& call, Size m) const {
  const SplitPart& share = call.layer.share;
  const Size blocks = share.blocks > 1 ? share.blocks_of(share.part).count : 1;
  const auto row_of = [&](Size open) { return open == 0 ? m : rows_ + open - 1; };
  for (Size b = 0; b < std::max<Size>(1, blocks); ++b) {
    sum_block(split, call, m, b, row_of(nodes_in({0, b})));
    join_rows(0, {b, 1}, [&](Size to, Size from) { add(row_of(to), row_of(from)); });
  }
}

/// Runs the layer on what the rank's m-th block of rows or heads has of its b-th block of
/// positions. Writes the sums to this row of the nodes, or -0 if the rank has none of them.
template <class T>
void RowBlocks<T>::sum_block(SplitPart split, const LayerCall<T>& call, Size m, Size b,
                             Size row) const {
  const SplitPart& share = call.layer.share;
  const bool of_rows = split.units == 0, of_positions = share.blocks > 1;
  const Size all_rows = call.samples * (of_positions ? share.total() : call.layer.positions());
  if (of_rows) split.units = all_rows;
  const Range own = split.blocks_of(split.part);
  const Size first = split.block(own.begin).begin;
  const Range some = own.count > 0 ? split.block(own.begin + m) : Range{};
  const Range rows = of_rows ? some : Range{0, some.count > 0 ? all_rows : 0};

  LayerCall<T> block = without_gradients(call);
  if (!of_rows) block.columns = {some.begin - first, some.count};
  for (std::size_t p = 0; p < max_layer_parameters; ++p)
    if (static_cast<int>(p) != by_position_) block.parameter_gradients[p] = gradient(row, p);
  const auto for_each_part = [&](const auto& f) {
    if (!of_positions) {
      if (rows.count > 0) f(Range{rows.begin - (of_rows ? first : 0), rows.count});
      return;
    }
    const Range blocks = share.blocks_of(share.part);
    if (blocks.count == 0) return;
    detail::for_each_run(share, blocks.begin + b, call.samples, [&](Range positions, Range held) {
      const Range part = intersection(positions, rows);
      const Size before = split.parts > 1 && of_rows ? share.rows().among(first) : 0,
                 offset = positions.begin - held.begin + before;
      if (part.count > 0) f(Range{part.begin - offset, part.count});
    });
  };
  if (backward_on(for_each_part, call, block, gathered_)) return;
  for (const Vector<State>& sum : block.parameter_gradients)
    if (sum.data() != nullptr) set_minus_zero(sum);
}

template <class T>
void RowBlocks<T>::reduce(const Communicator& ranks) {
  ranks.all_reduce(in_place_ ? alias_vector(gradients_[0].data(), elements_)
                             : alias_vector(nodes_.data(), (first_row_ + rows_) * elements_));
  for (Size stack = 0; stack < static_cast<Size>(stacks_.size()); ++stack) {
    gradients_ = stacks_[stack], first_row_ = stack * rows_;
    finish();
  }
}

/// Adds up the rows of nodes.
template <class T>
void RowBlocks<T>::finish() {
  for (Size step = 1; step < rows_; step *= 2)
    for (Size m = 0; m < rows_; m += 2 * step) add(m, m + step);
  for (std::size_t p = 0; !in_place_ && p < max_layer_parameters; ++p) {
    const Vector<const State> sum = gradient(0, p);
    if (sum.data() != nullptr) Kokkos::deep_copy(ExecSpace(), gradients_[p], sum);
  }
}

TESSERA_INSTANTIATE_CLASS(RowBlocks);

}  // namespace tessera
