// SPDX-License-Identifier: Apache-2.0
// Searches for the strategy, mesh, microbatches and recomputation with the shortest step on a
// machine.
#pragma once

#include <string>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera {

/// One way to run a model, with its prediction.
struct Candidate {
  Config config;  ///< complete, with the mesh and all options
  MeshShape mesh{{{"data", 1}}};
  Size memory_bytes = 0;  ///< device memory of the rank that needs most
  Size sent_bytes = 0;    ///< payload bytes of the calls of rank 0 in one step
  SimulatedStep step{};   ///< all zero if the machine's memory is too small
};

/// The result of a search.
struct Advice {
  std::vector<Candidate> fits;       ///< candidates that fit in memory, shortest step first
  std::vector<Candidate> too_large;  ///< for each mesh where none fits, the one that needs least
                                     ///< memory; smallest memory first
};

/// Searches for ways to run the model, batch and types of `config` on `ranks` ranks: all
/// strategies; all meshes with the usual axes of each strategy, `model` and `pipeline`, and
/// `context` with every way of attention if samples have several positions; numbers of
/// microbatches; and recomputation. Recomputation is tried only if the memory is too small without
/// it. Without a pipeline, the same holds for more than one microbatch. Needs neither MPI nor a
/// device. Throws ConfigError if no mesh of `ranks` ranks can run the configuration, or if the
/// machine has fewer ranks.
Advice advise(const Config& config, Size ranks, const Machine& machine);

/// Returns the part of a step in which `slower` loses most time against `faster`, such as "0.12 s
/// more in all_reduce on data"; "" if no part is slower.
std::string why_slower(const SimulatedStep& slower, const SimulatedStep& faster);

}  // namespace tessera
