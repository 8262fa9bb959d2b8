// SPDX-License-Identifier: Apache-2.0
// Searches the strategy, mesh, microbatches and recomputation with the shortest step on a machine.
#pragma once

#include <string>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera {

/// One way to run a configuration, with its prediction.
struct Candidate {
  Config config;
  MeshShape mesh{{{"data", 1}}};
  Size memory_bytes = 0;  ///< device memory of the rank that needs most
  Size sent_bytes = 0;    ///< payload bytes of one step of rank 0
  SimulatedStep step{};   ///< zero if the memory is too small
};

struct Advice {
  std::vector<Candidate> fits;       ///< shortest step first
  std::vector<Candidate> too_large;  ///< smallest memory first
};

/// Searches configurations for the model, batch and types of `config`: strategies, all meshes of
/// `ranks` ranks over the usual axes of each strategy and `model` and `pipeline`, numbers of
/// microbatches, and recomputation. Without a pipeline, more microbatches and recomputation are
/// tried only if the memory is too small without them. Needs neither MPI nor a device. Throws
/// ConfigError if no mesh of `ranks` ranks can run the configuration or the machine has fewer
/// ranks.
Advice advise(const Config& config, Size ranks, const Machine& machine);

/// Returns the part of a step that costs `slower` most time against `faster`, such as "0.12 s more
/// in all_reduce on data"; "" if no part is slower.
std::string why_slower(const SimulatedStep& slower, const SimulatedStep& faster);

}  // namespace tessera
