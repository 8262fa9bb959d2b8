// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/config/config.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// A training on the first ranks of a communicator, one axis of them.
struct PlainRun {
  Config config;
  Size ranks = 1;
};

/// A short training of few samples on two numbers of ranks, whose losses must agree before more
/// ranks are trusted with a reference.
struct Trial {
  std::string name;  ///< of its file
  PlainRun fewer, more;
};

/// How the losses are found that cases with one configuration are held against.
struct ReferencePlan {
  std::string name;  ///< of the file: the same for all cases that train the same
  PlainRun run;
  std::vector<Trial> trials;  ///< from one rank up to those of `run`; none for one rank
};

/// The file of the losses of all cases that train the same as this one.
std::string reference_name(const Config& config);

/// The same training, replicated and with nothing overlapped, on min(rules.ranks, available, batch)
/// ranks: in one microbatch, or in as many as its memory limit asks for; with FSDP where the
/// parameters alone are too large. Each trial has at most 16 times the ranks of the one before,
/// two samples for each of them, and the strategy of the reference, but on one rank. Throws Error
/// (out_of_memory) where nothing fits.
ReferencePlan plan_reference(const Config& config, const VerifyRules& rules, const Limits& limits,
                             Size available);

}  // namespace tessera::bench
