// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/comm/communicator.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/trace/region_timer.hpp>

namespace tessera {

/// Sets `waiting` of each call of the traces, by rank of the mesh. A call takes as long as on the
/// last rank to arrive in its group, a message as long as the shortest one; the rest of its time is
/// waiting. A stage that progresses its messages during a pass does not wait. If the ranks of a
/// group have different numbers of calls, because tests completed requests, waits are 0.
void find_waits(const MeshShape& mesh, std::vector<RankTrace>& ranks);

/// Returns the traces of all ranks with their waits on rank 0, and nothing on the other ranks.
/// `world` has the ranks of the mesh in its order. Collective.
std::vector<RankTrace> gather_traces(const Communicator& world, const MeshShape& mesh,
                                     const RankTrace& mine);

/// Returns the axes of the mesh over which the group of a call communicates: "data", "data+fsdp".
/// Any other name, such as "world", stands for all axes.
AxisSet axes_of_group(const MeshShape& mesh, const std::string& name);

}  // namespace tessera
