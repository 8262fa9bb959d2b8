// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/config/config.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// A training on the first ranks of a communicator, with one mesh axis.
struct PlainRun {
  Config config;
  Size ranks = 1;
};

/// A short training on two numbers of ranks, whose losses must agree before a reference may use the
/// larger number.
struct Trial {
  PlainRun fewer, more;
};

/// The training that gives the reference losses of a configuration.
struct ReferencePlan {
  std::string name;  ///< name of its file
  PlainRun run;
  std::vector<Trial> trials;  ///< from one rank up to those of `run`; none for one rank
};

/// Returns the name of the reference file of a configuration. It is the same for all cases that
/// train in the same way.
std::string reference_name(const Config& config);

/// Plans the reference on min(rules.ranks, available, batch) ranks: replicated, without overlap,
/// and in as few microbatches as the memory limit allows, or with FSDP if the parameters are too
/// large. Each trial has at most 16 times the ranks of the one before, two samples per rank, and
/// the strategy of the reference; its single rank is replicated. Throws Error (out_of_memory) if
/// nothing fits.
ReferencePlan plan_reference(const Config& config, const VerifyRules& rules, const Limits& limits,
                             Size available);

}  // namespace tessera::bench
