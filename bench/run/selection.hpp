// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/comm/backend.hpp>

#include "results/results_directory.hpp"
#include "run/fault.hpp"
#include "study/case.hpp"

namespace tessera::bench {

struct RunOptions {
  StudySource source{};
  std::string directory{};
  std::vector<std::string> only{};      ///< ids of the cases to run; empty: all
  bool resume = false;                  ///< continue with the present results
  std::vector<std::string> retry{};     ///< statuses of cases to rerun
  std::optional<Size> give_up{};        ///< once so many launches have ended during a case
  std::string machine{};                ///< machine file to predict by; empty: measure the machine
  std::optional<std::uint64_t> seed{};  ///< for the order of cases; default: the study's
  bool dry_run = false;
  bool figures_of_merit = false;  ///< print them, too
  bool traces = false;            ///< keep the traces of the instrumented steps
  std::optional<Fault> fault{};
};

/// The decision of a launch about one case.
struct Selected {
  enum class What {
    run,
    skip,     ///< record it as skipped
    keep,     ///< it has a result
    leave,    ///< another launch runs it, or --case does not name it
    pending,  ///< the launch lacks ranks, threads or a backend
    give_up,  ///< record it as failed, because launches ended during it
  } what = What::run;
  bool continues = false;  ///< keeps the present rounds
  std::string note{};      ///< reason, for messages
};

/// The resources of a launch.
struct Capacity {
  Size ranks = 1;
  std::optional<Size> threads{};          ///< per rank; none: unknown
  std::optional<BackendFacts> backend{};  ///< none: unknown
  Topology topology = 1;
};

/// `results` may not exist yet.
Selected select_case(const Case& point, const ResultsDirectory& results, const RunOptions& options,
                     const Study& study, const Capacity& capacity);

/// Returns the numbers in an order that depends on the seed only.
std::vector<std::size_t> shuffled(std::vector<std::size_t> numbers, std::uint64_t seed);

/// Throws ConfigError with the nearest id unless one of the cases has it.
void check_id(const std::vector<Case>& cases, const std::string& id);

}  // namespace tessera::bench
