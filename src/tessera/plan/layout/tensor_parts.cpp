// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/layout/tensor_parts.hpp>

namespace tessera {

std::vector<TensorPart> tensor_parts(const Plan& plan, Size rank, TensorRole role) {
  const StatePlan state = plan.state(rank);
  const ParameterLayout& layout = plan.stage(rank).parameters;
  std::vector<TensorPart> parts;
  Size moment = 0;  // number of the next moment of the parameter
  Size second = 0;  // elements of second moments so far, with padding
  for (const Slot& slot : plan.stage(rank).slots) {
    if (slot.parameter < 0) continue;
    if (slot.role == TensorRole::parameter) moment = 0;
    if (slot.role != role) continue;
    const ParameterPlan& parameter = layout.parameters[slot.parameter];
    const Piece piece = plan.piece(rank, parameter);
    const Size bucket = parameter.bucket, begin = parameter.place.begin;
    const Range elements{begin, num_elements(piece.extent)};
    const Range owned = intersection(elements, state.buckets[bucket].owned);
    const Range held = state.buckets[bucket].part(slot.held);
    const Range kept = intersection(elements, held);
    Range place = state.place_of(bucket, kept, slot.held);
    if (role == TensorRole::moment && moment == 1) {  // matrices of muon have none
      place.begin = second;
      second += intersection(parameter.place, held).count;
    }
    parts.push_back({slot, role == TensorRole::moment ? moment++ : 0, piece,
                     Range{kept.begin - begin, kept.count}, Range{owned.begin - begin, owned.count},
                     !plan.is_copy(rank, parameter),
                     plan.input.mesh.coordinate(rank, layout.buckets[bucket].replicas()) == 0,
                     place});
  }
  return parts;
}

}  // namespace tessera
