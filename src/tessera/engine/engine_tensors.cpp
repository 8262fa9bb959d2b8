// SPDX-License-Identifier: Apache-2.0
// Members of Engine that execute actions on tensors between layers: redistributions, sums, messages
// and losses.
#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/layers/shared_rows.hpp>
#include <tessera/nn/loss.hpp>
#include <tessera/nn/products/convert.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/tensor/redistribute_along.hpp>

namespace tessera {
namespace {

/// Returns all elements of a matrix as a vector, row by row.
template <class T>
Vector<T> flat(const Matrix<T>& matrix) {
  return alias_vector(matrix.data(), static_cast<Size>(matrix.extent(0) * matrix.extent(1)));
}

}  // namespace

template <class T>
void Engine<T>::redistribute(const Move& move, const Microbatch<State>& batch) const {
  const Region region("tessera::redistribute");
  const auto run = [&](const auto& source, const auto& tensor) {
    using E = typename std::decay_t<decltype(source)>::non_const_value_type;
    // redistribute_along() takes Views that can be written, because a reduction writes to its
    // source. Other redistributions only read it.
    const Vector<E> data =
        flat(alias_matrix(const_cast<E*>(source.data()), static_cast<Size>(source.extent(0)),
                          static_cast<Size>(source.extent(1))));
    const Slot &from = stage_.slots[move.from], &to = stage_.slots[move.to];
    const Size samples = batch.samples_of(from.sample_axes & to.sample_axes);
    const MovedBlock block =
        moved_block(from, to, move.axis, samples, batch.of_batch->filled(batch.number),
                    plan_.input.mesh, rank_);
    redistribute_along(communicators_[{move.axis}], block.before, block.after, block.shape, data,
                       flat(tensor(move.to)),
                       move.scratch == no_slot ? Vector<E>() : flat(tensor(move.scratch)));
  };
  if (frame_.has_compute_type(move.from))
    run(frame_.read(move.from, batch), [&](SlotId id) { return frame_(id, batch); });
  else
    run(frame_.read_in_state_type(move.from, batch),
        [&](SlotId id) { return frame_.in_state_type(id, batch); });
}

template <class T>
void Engine<T>::accumulate_tensors(const Accumulate& sum, const Microbatch<State>& batch) const {
  const SlotId from = sum.from, to = sum.to;
  const auto combine = [&](const auto& source, const auto& target) {
    using E = typename std::decay_t<decltype(target)>::value_type;
    if (sum.adds)
      accumulate<E>(source, target);
    else
      Kokkos::deep_copy(ExecSpace(), target, source);
  };
  if constexpr (!std::is_same_v<State, Compute>) {
    if (!frame_.has_compute_type(from)) {
      if (frame_.has_compute_type(to))
        return convert<State, Compute>(flat(frame_.read_in_state_type(from, batch)),
                                       flat(frame_(to, batch)));
      return combine(flat(frame_.in_state_type(from, batch)),
                     flat(frame_.in_state_type(to, batch)));
    }
  }
  combine(flat(frame_(from, batch)), flat(frame_(to, batch)));
}

template <class T>
void Engine<T>::message(const Message& message, const Microbatch<State>& batch) {
  if (message.phase == Phase::finish) return messages_.finish(message, batch.number);
  const auto start = [&](const auto& tensor) {
    messages_.start(message, batch.number, communicators_[message.ranks], flat(tensor));
  };
  if (frame_.has_compute_type(message.tensor))
    start(frame_(message.tensor, batch));
  else
    start(frame_.in_state_type(message.tensor, batch));
}

/// Returns a prediction or targets in the shape in which the loss counts rows (LossShape).
template <class T>
template <class E>
Matrix<const E> Engine<T>::in_loss_shape(const Matrix<const E>& all, Size samples) const {
  const Size positions = samples == 0 ? 0 : static_cast<Size>(all.extent(0)) / samples;
  const LossShape shape =
      loss_shape(plan_.input.loss, samples, positions, static_cast<Size>(all.extent(1)));
  return alias_matrix(all.data(), shape.rows, shape.cols);
}

/// Returns the divisor of the sum of losses: the count of the whole batch, so that the gradients of
/// all ranks and microbatches add up to that of the mean.
template <class T>
Size Engine<T>::loss_divisor(const Microbatch<State>& batch) const {
  return options_.sum_gradients ? 1 : batch.global_samples * losses_per_sample_;
}

/// Every rank of the batch gets the number of the whole batch, in device memory.
template <class T>
void Engine<T>::count_targets(const CountTargets& count, const Now& now) const {
  tessera::count_targets(now.targets, static_cast<double>(*plan_.input.model.ignore_index),
                         sums_.counted());
  communicators_[count.ranks].all_reduce(sums_.counted());
}

template <class T>
void Engine<T>::count_evaluated_targets(const Microbatch<State>& batch) const {
  tessera::count_targets(batch.y, static_cast<double>(*plan_.input.model.ignore_index),
                         alias_vector(sums_.evaluated().data() + 1, 1));
  add_up(sums_.evaluated());
}

template <class T>
void Engine<T>::loss_terms(const PartialLoss& loss, const Microbatch<State>& batch) const {
  const auto prediction = frame_.read(loss.prediction, batch);
  const auto terms = frame_.in_state_type(loss.terms, batch);
  MemoryGuard guard;
  close_arenas(guard);
  guard.open(prediction), guard.open(terms);
  if (plan_.input.loss == LossKind::relative_l2)
    return relative_l2_terms<Compute>(
        in_loss_shape(prediction, batch.samples), in_loss_shape(batch.y, batch.samples),
        plan_.input.context_share(plan_.input.model.output_positions(), rank_), terms);
  const Split& columns = plan_.placements.back().columns[1];
  const Size part = columns.parts > 1 ? plan_.input.mesh.coordinate(rank_, "model") : 0;
  cross_entropy_terms<Compute>(prediction, batch.y, operands_.layers().back().first_column(),
                               {columns, part}, terms);
}

template <class T>
void Engine<T>::loss(const Loss& loss, const Now& now, bool wants_gradient) const {
  const Region region("tessera::loss");
  const Microbatch<State>& batch = now.microbatch;
  const auto prediction = frame_.read(loss.prediction, batch);
  LossDetails<State> details{loss_scale().value(), options_.boundary_weight};
  if (const auto& ignored = plan_.input.model.ignore_index) {
    details.ignored = static_cast<double>(*ignored);
    if (wants_gradient) details.counted = sums_.counted().data();
    details.targets = batch.global_samples * losses_per_sample_;
    details.averages = !options_.sum_gradients;
  }
  if (plan_.input.numerics.reproducible)
    details.counted_part = plan_.input.mesh.coordinate(rank_, "context") == 0 ? 1 : 0;
  Matrix<const State> terms;
  if (loss.terms != no_slot) {
    details.first_class = operands_.layers().back().first_column();
    details.classes = plan_.input.model.output_width();
    terms = frame_.in_state_type(loss.terms, batch);
  }
  const Matrix<Compute> gradient =
      wants_gradient ? frame_(loss.gradient, batch) : Matrix<Compute>();
  MemoryGuard guard;
  close_arenas(guard);
  guard.open(prediction), guard.open(terms), guard.open(gradient);
  details.terms = terms;
  const LossKind kind = plan_.input.loss;
  if (plan_.input.loss_blocks() == 1)
    return loss_and_gradient<Compute>(kind, in_loss_shape(prediction, batch.samples),
                                      in_loss_shape(batch.y, batch.samples), loss_divisor(batch),
                                      loss_sums(now), gradient, details);
  const SplitPart share = plan_.input.context_share(plan_.input.model.output_positions(), rank_);
  const Range blocks = share.blocks_of(share.part);
  for (Size b = blocks.begin; b < blocks.end(); ++b) {
    Vector<double> sum;  // of the runs before
    ::tessera::detail::for_each_run(share, b, batch.samples, [&](Range, Range rows) {
      const auto some = [&](const auto& matrix) {
        return matrix.data() == nullptr ? matrix : rows_of(matrix, rows);
      };
      details.terms = some(terms);
      const bool is_first = sum.data() == nullptr;
      if (is_first) sum = alias_vector(loss_sums(now, b).data(), 1);
      loss_and_gradient<Compute>(kind, in_loss_shape(some(prediction), 1),
                                 in_loss_shape(some(batch.y), 1), loss_divisor(batch),
                                 is_first ? sum : sums_.part(), some(gradient), details);
      if (!is_first) accumulate<double>(sums_.part(), sum);
    });
  }
}

template <class T>
void Engine<T>::add_error(const Loss& loss, const Microbatch<State>& batch) const {
  add_solution_error<Compute>(in_loss_shape(frame_.read(loss.prediction, batch), batch.samples),
                              in_loss_shape(batch.y, batch.samples), sums_.errors());
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
