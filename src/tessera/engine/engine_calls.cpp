// SPDX-License-Identifier: Apache-2.0
// The engine's actions that move data between ranks: activations along `model`, parameters and
// gradients of buckets.
#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/mesh/redistribute.hpp>
#include <tessera/optim/clipping.hpp>

namespace tessera {
namespace {

/// All elements in the order of memory.
template <class T>
Vector<T> flat(const Matrix<T>& matrix) {
  return alias_vector(matrix.data(), static_cast<Size>(matrix.extent(0) * matrix.extent(1)));
}

}  // namespace

template <class T>
void Engine<T>::redistribute(const Action& action, const Microbatch<Compute>& batch) const {
  const Region region("tessera::redistribute");
  const std::vector<Slot>& slots = stage_->slots;
  const Slot& from = slots[static_cast<std::size_t>(action.reads[0])];
  const Slot& to = slots[static_cast<std::size_t>(action.writes[0])];
  const Matrix<const Compute> source = frame_.read(action.reads[0], batch);
  // Only read, unless it is a sum; but Views of one type go both ways in packing.
  const Vector<Compute> data = alias_vector(const_cast<Compute*>(source.data()),
                                            static_cast<Size>(source.extent(0) * source.extent(1)));
  redistribute_along(
      communicators_[RankSet::model], from.along_model, to.along_model, {batch.rows, from.shape[1]},
      data, flat(frame_(action.writes[0], batch)),
      action.scratch == no_slot ? Vector<Compute>() : flat(frame_(action.scratch, batch)));
}

template <class T>
void Engine<T>::accumulate_slots(const Action& action, const Microbatch<Compute>& batch) const {
  const Vector<Compute> from = flat(frame_(action.reads[0], batch));
  const Vector<Compute> to = flat(frame_(action.writes[0], batch));
  if (action.adds)
    accumulate<Compute>(Vector<const Compute>(from), to);
  else
    Kokkos::deep_copy(ExecSpace(), to, from);
}

template <class T>
void Engine<T>::start_message(const Action& action, const Microbatch<Compute>& batch) {
  const Communicator& stages = communicators_[RankSet::pipeline];
  const Vector<Compute> tensor = flat(frame_(action.index, batch));
  const int peer = static_cast<int>(action.peer), tag = static_cast<int>(action.tag);
  message_of(action, batch) = action.kind == ActionKind::start_send
                                  ? stages.isend(tensor, peer, tag)
                                  : stages.ireceive(tensor, peer, tag);
  ++in_flight_;
}

/// A tensor is received or sent, and as many microbatches of it as it has copies.
template <class T>
Request& Engine<T>::message_of(const Action& action, const Microbatch<Compute>& batch) {
  const Storage& storage = stage_->storages[stage_->slots[action.index].storage];
  return messages_.at({action.index, batch.number % storage.copies});
}

template <class T>
void Engine<T>::gather(Size bucket) const {
  const Region region("tessera::gather");
  communicators_[RankSet::shard].all_gather(parameters_.share(bucket), parameters_.whole(bucket));
}

template <class T>
void Engine<T>::start_gather(Size bucket) {
  gather_in_flight_ = communicators_[RankSet::shard].iall_gather(parameters_.share(bucket),
                                                                 parameters_.whole(bucket));
  ++in_flight_;
}

/// Where the own share of a microbatch's gradient arrives: the first one's where gradients are
/// kept, the others' beside them.
template <class T>
Vector<T> Engine<T>::scattered(Size bucket, Size microbatch) const {
  const Vector<State> share = gradients_.share(bucket);
  if (!is_added(microbatch)) return share;
  return alias_vector(incoming_.data(), static_cast<Size>(share.extent(0)));
}

/// Buckets that take turns in one buffer leave something where no parameter of the next one lies.
template <class T>
void Engine<T>::clear_padding(Size bucket) const {
  if (!state_.sharding.gradients) return;
  for (const Range& range : padding_[bucket])
    Kokkos::deep_copy(ExecSpace(), gradients_.part(bucket, range), State(0));
}

template <class T>
void Engine<T>::reduce_scatter(Size bucket, Size microbatch) const {
  const Region region("tessera::reduce_scatter");
  const Communicator& ranks = communicators_[RankSet::shard];
  if (!state_.sharding.gradients) return ranks.reduce_scatter(gradients_.whole(bucket));
  clear_padding(bucket);
  ranks.reduce_scatter(gradients_.whole(bucket), scattered(bucket, microbatch));
  add_incoming(bucket, microbatch);
}

template <class T>
void Engine<T>::start_reduce_scatter(Size bucket, Size microbatch) {
  const Communicator& ranks = communicators_[RankSet::shard];
  const Scratch room{arriving_};
  clear_padding(bucket);
  scatter_in_flight_ =
      state_.sharding.gradients
          ? ranks.ireduce_scatter(gradients_.whole(bucket), scattered(bucket, microbatch), room)
          : ranks.ireduce_scatter(gradients_.whole(bucket), room);
  ++in_flight_;
}

template <class T>
void Engine<T>::finish_reduce_scatter(Size bucket, Size microbatch) {
  finish(scatter_in_flight_);
  if (state_.sharding.gradients) add_incoming(bucket, microbatch);
}

template <class T>
void Engine<T>::add_incoming(Size bucket, Size microbatch) const {
  if (is_added(microbatch))
    accumulate<State>(Vector<const State>(scattered(bucket, microbatch)), gradients_.share(bucket));
}

template <class T>
void Engine<T>::start_reduce(Size bucket) {
  reductions_[bucket] =
      communicators_[RankSet::replica].iall_reduce(gradients_.range(state_.gradient(bucket)));
  ++in_flight_;
}

/// Of what is whole along `model` while its layer's rows are split there.
template <class T>
void Engine<T>::reduce_rows(Size index) const {
  const UnitPlan& unit = stage_->parameters.units[index];
  const Range own = state_.owned_gradients(unit.bucket, unit.own_rows);
  if (own.count > 0) communicators_[RankSet::model].all_reduce(gradients_.range(own));
}

template <class T>
void Engine<T>::finish(Request& request) {
  request.wait();
  --in_flight_;
}

/// Non-blocking MPI moves only inside MPI calls, so what has been started is asked for between
/// actions.
template <class T>
void Engine<T>::poll() {
  gather_in_flight_.test();
  scatter_in_flight_.test();
  for (Request& request : reductions_) request.test();
  for (auto& [tensor, request] : messages_) request.test();
}

template class Engine<float>;
template class Engine<double>;

}  // namespace tessera
