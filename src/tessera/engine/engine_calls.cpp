// SPDX-License-Identifier: Apache-2.0
// The engine's actions that move data between ranks: activations along `model`, parameters and
// gradients of buckets.
#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/mesh/redistribute_along.hpp>
#include <tessera/nn/products/convert.hpp>
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
void Engine<T>::redistribute(const Action& action, const Microbatch<State>& batch) const {
  const Region region("tessera::redistribute");
  const std::vector<Slot>& slots = stage_->slots;
  const Slot& from = slots[action.reads[0]];
  const Slot& to = slots[action.writes[0]];
  const auto run = [&](const auto& source, const auto& tensor) {
    using E = typename std::decay_t<decltype(source)>::non_const_value_type;
    // Only read, unless it is a sum; but Views of one type go both ways in packing.
    const Vector<E> data =
        flat(alias_matrix(const_cast<E*>(source.data()), static_cast<Size>(source.extent(0)),
                          static_cast<Size>(source.extent(1))));
    redistribute_along(communicators_[RankSet::model], from.along_model, to.along_model,
                       {batch.samples * from.positions, from.shape[1]}, data,
                       flat(tensor(action.writes[0])),
                       action.scratch == no_slot ? Vector<E>() : flat(tensor(action.scratch)));
  };
  if (frame_.holds_sums(action.reads[0]))
    run(frame_.read_sums(action.reads[0], batch),
        [&](SlotId id) { return frame_.sums(id, batch); });
  else
    run(frame_.read(action.reads[0], batch), [&](SlotId id) { return frame_(id, batch); });
}

/// Between tensors of one type, or a copy in the other.
template <class T>
void Engine<T>::accumulate_slots(const Action& action, const Microbatch<State>& batch) const {
  const SlotId from = action.reads[0], to = action.writes[0];
  const auto combine = [&](const auto& source, const auto& target) {
    using E = typename std::decay_t<decltype(target)>::value_type;
    if (action.adds)
      accumulate<E>(source, target);
    else
      Kokkos::deep_copy(ExecSpace(), target, source);
  };
  if constexpr (!std::is_same_v<State, Compute>) {
    const bool holds_sums = frame_.holds_sums(from);
    if (holds_sums && frame_.holds_sums(to))
      return combine(flat(frame_.sums(from, batch)), flat(frame_.sums(to, batch)));
    if (holds_sums)
      return convert<State, Compute>(flat(frame_.read_sums(from, batch)), flat(frame_(to, batch)));
  }
  combine(flat(frame_(from, batch)), flat(frame_(to, batch)));
}

template <class T>
void Engine<T>::start_message(const Action& action, const Microbatch<State>& batch) {
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
Request& Engine<T>::message_of(const Action& action, const Microbatch<State>& batch) {
  const Storage& storage = stage_->storages[stage_->slots[action.index].storage];
  return messages_.at({action.index, batch.number % storage.copies});
}

template <class T>
void Engine<T>::gather(Size bucket) const {
  const Region region("tessera::gather");
  communicators_[RankSet::shard].all_gather(used_.share(bucket), used_.whole(bucket));
}

template <class T>
void Engine<T>::start_gather(Size bucket) {
  gather_in_flight_ =
      communicators_[RankSet::shard].iall_gather(used_.share(bucket), used_.whole(bucket));
  ++in_flight_;
}

/// Where the own share of a microbatch's gradient arrives: the first one's where gradients are
/// kept, the others' beside them.
template <class T>
auto Engine<T>::scattered(Size bucket, Size microbatch) const -> Vector<State> {
  const Vector<State> share = gradients_.share(bucket);
  if (!is_added(microbatch)) return share;
  return alias_vector(incoming_.data(), static_cast<Size>(share.extent(0)));
}

/// Buckets that take turns in one buffer, and reductions in place, leave something where no
/// parameter lies.
template <class T>
void Engine<T>::clear_padding(Size bucket) const {
  for (const Range& range : padding_[bucket])
    Kokkos::deep_copy(ExecSpace(), gradients_.part(bucket, range), State(0));
}

template <class T>
void Engine<T>::reduce_scatter(Size bucket, Size microbatch) const {
  const Region region("tessera::reduce_scatter");
  const Communicator& ranks = communicators_[RankSet::shard];
  clear_padding(bucket);
  if (!state_.sharding.gradients) return ranks.reduce_scatter(gradients_.whole(bucket));
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

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
