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
  std::vector<std::string> only{};      ///< ids of the cases to run; none: all
  bool resume = false;                  ///< go on with what is there
  std::vector<std::string> retry{};     ///< statuses of cases that are run again
  std::optional<Size> give_up{};        ///< on cases in which so many launches ended
  std::string machine{};                ///< machine file to predict by; empty: measure the machine
  std::optional<std::uint64_t> seed{};  ///< of the order; the study's otherwise
  bool dry_run = false;
  bool traces = false;  ///< keep the traces of the instrumented steps
  std::optional<Fault> fault{};
};

/// What a launch does about one case.
struct Selected {
  enum class What {
    run,
    skip,     ///< record that it does not apply
    keep,     ///< it has a result
    leave,    ///< another launch is running it, or it is not among those asked for
    pending,  ///< needs what this launch does not have
    give_up,  ///< record that launches ended before it did
  } what = What::run;
  bool continues = false;  ///< with the rounds that are there
  std::string note{};      ///< for people
};

/// What a launch has for cases.
struct Capacity {
  Size ranks = 1;
  std::optional<Size> threads{};          ///< of every rank; none: not known
  std::optional<BackendFacts> backend{};  ///< none: not known
  Topology topology = 1;
};

/// `results` may not exist yet.
Selected select_case(const Case& point, const ResultsDirectory& results, const RunOptions& options,
                     const Study& study, const Capacity& capacity);

/// The same numbers in an order that depends on the seed only.
std::vector<std::size_t> shuffled(std::vector<std::size_t> numbers, std::uint64_t seed);

/// Throws ConfigError with the nearest id unless one of the cases has it.
void check_id(const std::vector<Case>& cases, const std::string& id);

}  // namespace tessera::bench
