// SPDX-License-Identifier: Apache-2.0
// MPI itself, beside which a Communicator is measured.
#pragma once

#include <memory>
#include <string>

#include <mpi.h>

#include <tessera/base/view.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/mesh/mesh.hpp>

#include "measure/breakdown.hpp"

namespace tessera::bench {

/// The ranks of this rank's group along the axis, in their order. None where memory is a device's:
/// not every MPI takes that. Collective over all ranks.
inline std::shared_ptr<MpiHandle> raw_axis(const Mesh& mesh, const std::string& axis) {
  if (!Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemSpace>::accessible) return nullptr;
  const int color = static_cast<int>(group_of(mesh.shape(), axis, mesh.rank()).front());
  return std::make_shared<MpiHandle>(
      MpiHandle::split(MPI_COMM_WORLD, color, static_cast<int>(mesh.rank()), Site::current()));
}

}  // namespace tessera::bench
