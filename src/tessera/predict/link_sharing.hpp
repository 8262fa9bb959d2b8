// SPDX-License-Identifier: Apache-2.0
// Which calls leave a block of consecutive ranks, such as those of a node, over its link.
#pragma once

#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {

/// Returns the largest number of groups over `axes` that have ranks inside and outside of one block
/// of `width` consecutive ranks; 0 if every group stays in a block.
Size groups_leaving(const MeshShape& mesh, AxisSet axes, Size width);

/// Returns the largest number of ranks of the stage `from`, in one block of `width` consecutive
/// ranks, whose partners in the stage `to` are in another block.
Size messages_leaving(const MeshShape& mesh, Size from, Size to, Size width);

}  // namespace tessera
