// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <tessera/comm/request.hpp>
#include <tessera/mesh/mesh.hpp>

#include "measure/calibration.hpp"

namespace tessera::bench {

/// A piece of work of an action, as a rank of the case's plan has it.
struct PlannedWork {
  const WorkOfCase* of;
  const Action* action;
  Work work;
  LayerSpec layer;  ///< of forward and backward, with the rank's extents
  Size stage = 0;   ///< whose action it is
};

/// Such a piece by itself, in memory of its own, to be carried out again and again.
struct WorkRun {
  std::function<void()> refresh;   ///< operands become what they were
  std::function<void()> once;      ///< collective over the mesh where ranks exchange something
  std::function<Request()> start;  ///< of a started call, in place of `once`
  bool is_fresh = false;           ///< works on what each rank has just written
};

/// Every rank of the mesh works with the sizes of this one piece. Collective over the mesh.
WorkRun make_work_run(const PlannedWork& planned, const Mesh& mesh);

}  // namespace tessera::bench
