// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <tessera/predict/link_sharing.hpp>

namespace tessera {
namespace {

/// Returns true if blocks cut no axis unevenly, so that all of them look alike.
bool are_blocks_alike(const MeshShape& mesh, Size width) {
  const auto fits = [&](Size ranks) { return ranks % width == 0 || width % ranks == 0; };
  for (std::size_t axis = 0; axis < mesh.num_axes(); ++axis)
    if (!fits(mesh.stride(axis))) return false;
  return fits(mesh.num_ranks());
}

/// Returns the distance from the first rank of a group to the last one.
Size span_of(const MeshShape& mesh, AxisSet axes) {
  Size span = 0;
  for (const std::size_t axis : axes) span += (mesh.axis(axis).size - 1) * mesh.stride(axis);
  return span;
}

}  // namespace

Size groups_leaving(const MeshShape& mesh, AxisSet axes, Size width) {
  const Size ranks = mesh.num_ranks(), span = span_of(mesh, axes);
  if (width >= ranks || span == 0) return 0;
  if (are_blocks_alike(mesh, width)) {
    const Size inside = mesh.group_below(axes, width);
    return inside == mesh.group_size(axes) ? 0 : width / inside;
  }
  Size most = 0;
  for (Size begin = 0; begin < ranks; begin += width) {
    std::set<Size> leaving;  // groups by their first rank
    for (Size rank = begin; rank < std::min(ranks, begin + width); ++rank) {
      const Size first = mesh.first_of_group(axes, rank);
      if (first / width != (first + span) / width) leaving.insert(first);
    }
    most = std::max(most, std::ssize(leaving));
  }
  return most;
}

Size messages_leaving(const MeshShape& mesh, Size from, Size to, Size width) {
  const std::size_t axis = mesh.require("pipeline");
  const Size stride = mesh.stride(axis), run = stride * mesh.axes()[axis].size;
  Size most = 0, block = -1, leaving = 0;
  for (Size begin = from * stride; begin < mesh.num_ranks(); begin += run)
    for (Size rank = begin; rank < begin + stride; ++rank) {
      if (rank / width != block) block = rank / width, leaving = 0;
      leaving += (rank + (to - from) * stride) / width != block ? 1 : 0;
      most = std::max(most, leaving);
    }
  return most;
}

}  // namespace tessera
