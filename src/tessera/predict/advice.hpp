// SPDX-License-Identifier: Apache-2.0
// Which strategy, mesh, microbatches and recomputation make a step shortest on a machine.
#pragma once

#include <string>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera {

/// One way to run a configuration, as it is predicted.
struct Candidate {
  Config config;
  MeshShape mesh{{{"data", 1}}};
  Size memory_bytes = 0;  ///< of the rank that needs most
  Size sent_bytes = 0;    ///< payload of one step's calls of rank 0
  SimulatedStep step{};   ///< nothing where memory is too small
};

struct Advice {
  std::vector<Candidate> fits;       ///< shortest step first
  std::vector<Candidate> too_large;  ///< those that need least memory first
};

/// Searches strategies, all meshes of `ranks` ranks over the axes that each of them uses, with
/// `model` and `pipeline`, numbers of microbatches and recomputation, for the configuration's
/// model, batch and types. Microbatches and recomputation that only cost time are tried where
/// memory is too small without. Needs neither MPI nor a device. Throws ConfigError for a
/// configuration that no mesh of so many ranks can run.
Advice advise(const Config& config, Size ranks, const Machine& machine);

/// The part of a step that `slower` loses most by against `faster`: "0.12 s in all_reduce on data".
std::string why_slower(const SimulatedStep& slower, const SimulatedStep& faster);

}  // namespace tessera
