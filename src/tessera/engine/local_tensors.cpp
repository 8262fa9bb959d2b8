// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/engine/local_tensors.hpp>

namespace tessera {
namespace {

/// The flat buffer that keeps tensors of a role; `moment` counts from 0.
template <class T>
Vector<T> buffer_of(const Engine<T>& engine, TensorRole role, Size moment) {
  if (role == TensorRole::parameter) return engine.parameters().flat();
  if (role == TensorRole::gradient) return engine.gradients().flat();
  return engine.optimizer().moment(moment);
}

/// Copies a run of a block to its elements of the whole tensor.
template <class T>
void copy_to_whole(const LocalTensor<T>& tensor, const Vector<T>& whole) {
  const Size cols = tensor.block.extent.back();
  const bool matrix = tensor.block.extent.size() == 2;
  const Size row_offset = matrix ? tensor.block.offset[0] : 0;
  const Size col_offset = tensor.block.offset.back();
  const Size stride = tensor.plan.shape.back();
  const Size first = tensor.owned.begin;
  const T* const in = tensor.values.data() + (first - tensor.kept.begin);
  T* const out = whole.data();
  Kokkos::parallel_for(
      "tessera::copy_to_whole",
      Kokkos::RangePolicy<ExecSpace, Kokkos::IndexType<Size>>(0, tensor.owned.count),
      KOKKOS_LAMBDA(Size i) {
        const Size row = (first + i) / cols, col = (first + i) % cols;
        out[(row_offset + row) * stride + col_offset + col] = in[i];
      });
}

}  // namespace

template <class T>
std::vector<LocalTensor<T>> local_tensors(const Plan& plan, Size rank, const Engine<T>& engine,
                                          TensorRole role) {
  const MeshShape& mesh = plan.input.mesh;
  const StatePlan& state = engine.state();
  const Size coordinate = plan.local_rows(rank).model_coordinate;
  std::vector<LocalTensor<T>> tensors;
  Size moment = 0;  // of the parameter whose moments are being listed
  for (const TensorPlan& planned : plan.tensors) {
    if (planned.role == TensorRole::parameter) moment = 0;
    if (planned.role != role) continue;
    const UnitPlan& unit = state.units[planned.layer];
    const Range part = part_of_unit(planned, engine.local_model().layers[planned.layer]);
    const Range owned = intersection(part, unit.share);
    const Range kept = planned.in_shares ? owned : part;
    // What is empty begins where the buffer does: it may lie on neither side of the share.
    const Size at = kept.count == 0     ? 0
                    : planned.in_shares ? unit.share_begin + kept.begin - unit.share.begin
                                        : unit.whole.begin + kept.begin;
    const Vector<T> buffer = buffer_of(engine, role, role == TensorRole::moment ? moment++ : 0);
    const bool split = std::any_of(planned.placements.begin(), planned.placements.end(),
                                   [](const Placement& p) { return p.is_shard(); });
    tensors.push_back({planned, local_block(planned.shape, planned.placements, mesh, rank),
                       Range{kept.begin - part.begin, kept.count},
                       Range{owned.begin - part.begin, owned.count}, split || coordinate == 0,
                       alias_vector(buffer.data() + at, kept.count)});
  }
  return tensors;
}

template <class T>
Vector<T> whole_tensors(const Plan& plan, const Mesh& mesh, const Engine<T>& engine,
                        TensorRole role) {
  const std::vector<LocalTensor<T>> tensors = local_tensors(plan, mesh.rank(), engine, role);
  Size elements = 0;
  for (const LocalTensor<T>& tensor : tensors) elements += num_elements(tensor.plan.shape);
  const Vector<T> all("tessera::whole_tensors", static_cast<std::size_t>(elements));
  Size begin = 0;
  for (const LocalTensor<T>& tensor : tensors) {
    const Size n = num_elements(tensor.plan.shape);
    if (tensor.counts && tensor.owned.count > 0)
      copy_to_whole(tensor, alias_vector(all.data() + begin, n));
    begin += n;
  }
  // Each element is on one rank of those that split the state; zero on the others.
  engine.groups()[Group::split].all_reduce(all);
  return all;
}

#define TESSERA_INSTANTIATE(T)                                                            \
  template std::vector<LocalTensor<T>> local_tensors(const Plan&, Size, const Engine<T>&, \
                                                     TensorRole);                         \
  template Vector<T> whole_tensors(const Plan&, const Mesh&, const Engine<T>&, TensorRole);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
