// SPDX-License-Identifier: Apache-2.0
// Searches for the strategy, mesh, microbatches and recomputation with the shortest step on a
// machine.
#pragma once

#include <functional>
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

/// The progress of a search.
struct SearchState {
  const Candidate* best = nullptr;  ///< the fastest that fits in memory; nullptr: none yet
  Size planned = 0;                 ///< candidates of which a plan was made
  Size candidates = 0;              ///< all, as far as they are known
};

struct SearchOptions {
  /// Number of candidates to find. The search ends when no other one can be faster than these.
  std::size_t best = 10;
  std::function<void(const SearchState&)> progress{};  ///< called after each plan
};

/// The result of a search.
struct Advice {
  std::vector<Candidate> fits;  ///< the fastest that fit in memory, shortest step first
  /// For each mesh that was tried and where none fits, the one that needs least memory; smallest
  /// memory first. If nothing fits, all meshes were tried.
  std::vector<Candidate> too_large;
  Size planned = 0, candidates = 0;  ///< as in SearchState
};

/// Searches for ways to run the model, batch and types of `config` on `ranks` ranks: all
/// strategies; all meshes with the usual axes of each strategy, `model` and `pipeline`, and
/// `context` with every way of attention if samples have several positions; numbers of
/// microbatches; and recomputation: "cheap", then "block" in a transformer and "full" in other
/// models, each only if the memory is too small without it. Without a pipeline, the same holds for
/// more than one microbatch. The search begins with the smallest of StepBounds and plans and
/// simulates only what can be among the fastest, so it finds the same as an exhaustive one. If the
/// machine has ranks of other numbers of threads (Machine::others), as many threads as `ranks`
/// ranks have are also divided among those, and their candidates set distributed.threads. Needs
/// neither MPI nor a device. Throws ConfigError if no mesh of
/// `ranks` ranks can run the configuration, or if the machine has fewer ranks.
Advice advise(const Config& config, Size ranks, const Machine& machine,
              const SearchOptions& options = {});

/// Returns the part of a step in which `slower` loses most time against `faster`, such as "0.12 s
/// more in all_reduce on data"; "" if no part is slower.
std::string why_slower(const SimulatedStep& slower, const SimulatedStep& faster);

}  // namespace tessera
