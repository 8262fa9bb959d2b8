// SPDX-License-Identifier: Apache-2.0
// Plans of references, predicted times of a study on a machine, and what to try next.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tessera/config/config.hpp>
#include <tessera/predict/machine.hpp>

#include "results/summary.hpp"
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
/// nothing fits into the memory of what executes it.
ReferencePlan plan_reference(const Config& config, const VerifyRules& rules, const Limits& limits,
                             Size available, const Target& target = this_target());

/// Returns the number of steps of a round, for steps of this length: enough for block_seconds, and
/// in all rounds together between the study's steps and max_steps.
Size block_steps(const MeasureRules& rules, double step_seconds);

/// Returns the seconds of a case without set-up, with steps of this length: verification,
/// instrumented steps, and warm-up and timed steps, as if every round set it up again.
double case_seconds(const Case& point, const Study& study, double step_seconds);

/// Returns the predicted seconds of a case's reference with its trials, without set-up, in a launch
/// with the ranks of the case, and adds it to `made`. Returns 0 if it was made before or if there
/// is none. Throws ConfigError if the machine has too few ranks.
double reference_seconds(const Case& point, const Study& study, const Machine& machine,
                         std::set<std::string>& made);

/// The machine that predicts cases, and the factor by which measured times may exceed predicted
/// ones.
struct TimeSource {
  Machine machine;
  double safety;
};

/// Returns the seconds that these cases need in one launch, without its start. Each case and each
/// of their references takes ten seconds of set-up plus `safety` times its predicted steps, but at
/// most limits.case_seconds. Without a source, it takes limits.case_seconds. Throws ConfigError if
/// the machine has too few ranks for a case.
double seconds_of(const std::vector<const Case*>& cases, const Study& study,
                  const std::optional<TimeSource>& source);

/// A configuration that no case of a study has. It does the work of the fastest case on as many
/// ranks, and its predicted step is shorter.
struct Untried {
  std::string fastest;  ///< id of the fastest case
  std::string unknown;  ///< why nothing is predicted for it; then the rest is empty
  std::string strategy, mesh, activation_checkpointing;
  Size microbatches = 1;
  double step_seconds = 0, fastest_step_seconds = 0;  ///< both predicted, on one machine

  TESSERA_FIELDS(fastest, unknown, strategy, mesh, activation_checkpointing, microbatches,
                 step_seconds, fastest_step_seconds);
};

/// Returns the configuration with the shortest predicted step for each fastest case of the summary,
/// on up to 32 ranks, if it gains at least smallest_effect. `machine` returns the machine that
/// predicts a case in this launch, or null.
std::vector<Untried> untried(const Summary& summary, const std::vector<Case>& cases,
                             const std::function<const Machine*(const Case&)>& machine);

/// Returns a line for each configuration, and the reasons why there is none.
std::string untried_text(const std::vector<Untried>& list);

}  // namespace tessera::bench
