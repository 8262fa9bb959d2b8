// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {
namespace {

/// Returns the flat buffer of a role. `moment` counts from 0; other roles ignore it.
template <class T>
Vector<StateOf<T>> buffer_of(const Engine<T>& engine, TensorRole role, Size moment) {
  if (role == TensorRole::parameter) return engine.parameters().flat();
  if (role == TensorRole::gradient) return engine.gradients().flat();
  return engine.optimizer().moment(moment);
}

/// Copies the elements that the rank owns to their places in the whole tensor.
template <class S, class T>
void copy_to_whole(const LocalTensor<S>& tensor, const Vector<T>& whole) {
  const GlobalIndex place(tensor.slot.shape, tensor.piece);
  const Size first = tensor.owned.begin;
  const S* const in = tensor.owned_values().data();
  T* const out = whole.data();
  for_each(
      "tessera::copy_to_whole", tensor.owned.count,
      KOKKOS_LAMBDA(Size i) { out[place(first + i)] = static_cast<T>(in[i]); });
}

}  // namespace

template <class T>
LocalTensor<StateOf<T>> local_tensor(const Engine<T>& engine, const TensorPart& part) {
  const Vector<StateOf<T>> buffer = buffer_of(engine, part.slot.role, part.moment);
  return {part, alias_vector(buffer.data() + part.place.begin, part.place.count)};
}

namespace {

/// Returns by path the start of each tensor of a role in the result of whole_tensors(). The key ""
/// gives the number of all elements.
std::map<std::string, Size> places_of(const Plan& plan, TensorRole role) {
  std::multimap<std::pair<Size, Size>, const Slot*>
      in_order;  // by layer and number of the parameter
  for (const StagePlan& stage : plan.stages)
    for (const Slot& slot : stage.slots) {
      if (slot.role != role || slot.parameter < 0) continue;
      const ParameterPlan& parameter = stage.parameters.parameters[slot.parameter];
      if (parameter.is_copy) continue;
      in_order.emplace(std::pair{parameter.layer, parameter.number}, &slot);
    }
  std::map<std::string, Size> places;
  Size end = 0;
  for (const auto& [key, slot] : in_order) {
    places[slot->path] = end;
    end += num_elements(slot->shape);
  }
  places[""] = end;
  return places;
}

}  // namespace

template <class T>
Vector<StateOf<T>> whole_tensors(const Plan& plan, const Mesh& mesh, const Engine<T>& engine,
                                 TensorRole role) {
  const std::map<std::string, Size> places = places_of(plan, role);
  const Vector<StateOf<T>> all("tessera::whole_tensors", static_cast<std::size_t>(places.at("")));
  for (const TensorPart& part : tensor_parts(plan, mesh.rank(), role))
    if (part.counts && part.owned.count > 0)
      with_local_tensor(engine, part, [&](const auto& tensor) {
        copy_to_whole(tensor, alias_vector(all.data() + places.at(part.slot.path),
                                           num_elements(part.slot.shape)));
      });
  // Each element is set on one rank along these axes and zero on the others.
  const AxisSet axes = state_axes(plan.input, plan.input.mesh);
  engine.communicators()[axes].all_reduce(all);
  return all;
}

#define TESSERA_INSTANTIATE(T)                                                        \
  template LocalTensor<StateOf<T>> local_tensor(const Engine<T>&, const TensorPart&); \
  template Vector<StateOf<T>> whole_tensors(const Plan&, const Mesh&, const Engine<T>&, TensorRole);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
