// SPDX-License-Identifier: Apache-2.0
// The cases that a launch runs, and what they share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/predict/machine.hpp>
#include <tessera/process/outcome.hpp>
#include <tessera/process/runtime.hpp>

#include "measure/machine_speed.hpp"
#include "results/results_directory.hpp"
#include "run/commands.hpp"
#include "run/group.hpp"
#include "study/study.hpp"

namespace tessera::bench {

/// The decision of a launch about one case.
struct Selected {
  enum class What {
    run,
    skip,     ///< excluded, or no valid configuration
    keep,     ///< it has a result
    leave,    ///< --case does not name it
    pending,  ///< the launch lacks ranks, threads or a backend
    give_up,  ///< record it as failed, because launches ended during it
  } what = What::run;
  bool retries = false;  ///< --retry asks for it: what launches have measured counts no longer
  std::string note{};    ///< reason, for messages
};

/// The resources of a launch.
struct Capacity {
  Size ranks = 1;
  std::optional<Size> threads{};          ///< per rank; none: unknown
  std::optional<BackendFacts> backend{};  ///< none: unknown
  Topology topology = 1;
};

/// `result` is what the journals tell of the case.
Selected select_case(const Case& point, const CaseResult& result, const RunOptions& options,
                     const Study& study, const Capacity& capacity);

/// Returns the numbers in an order that depends on the seed only.
std::vector<std::size_t> shuffled(std::vector<std::size_t> numbers, std::uint64_t seed);

/// Throws ConfigError with the nearest id unless one of the cases has it.
void check_id(const std::vector<Case>& cases, const std::string& id);

/// The state that all cases of one launch share.
class LaunchState {
 public:
  const Study& study;
  const Communicator& world;
  const ResultsDirectory& results;
  const RunOptions& options;
  AbortRecord abort_record;
  std::unique_ptr<Journal> journal{};  ///< on rank 0, once the launch has begun to write

  /// Makes the groups of ranks that these cases need, in the order in which the cases run, and
  /// measures the machine of each group, unless the options name a machine file. Throws like
  /// load_machine(), and ConfigError for a machine that cannot predict a case. Collective over all
  /// ranks.
  LaunchState(const Runtime& runtime, const Study& study, const Communicator& world,
              const ResultsDirectory& results, const RunOptions& options, const Capacity& capacity,
              const std::vector<const Case*>& cases);

  /// Adds a line to the journal. Throws on all ranks if it cannot be written. Collective.
  template <class Line>
  void append(const Line& line) const {
    collectively(world, [&] {
      if (journal) journal->append(line);
    });
  }
  std::string name() const { return document_.at("name"); }
  /// The first ranks of the job, as many as the case needs.
  const Group& group(const Case& point) const { return groups_.at(key_of(point)); }
  /// The machine that predicts the case, on rank 0; null on other ranks. Also null for a case that
  /// sets other threads than those of the machine of a file.
  const Machine* machine(const Case& point) const;
  /// Returns true if the case has more threads than the processors of its nodes. On rank 0 only.
  bool is_oversubscribed(const Case& point) const;
  const MachineProbe& probe() const { return probe_; }
  /// Seconds since the launch began.
  double seconds() const { return clock_.seconds(); }
  /// Creates the journal and writes the document. On rank 0 only.
  void begin(const Chosen& chosen);

 private:
  using GroupKey = std::pair<Size, Backend>;  ///< ranks, and the backend of their cases
  GroupKey key_of(const Case& point) const {
    return {point.ranks(), choose_backend(point.config.comm.backend, facts_).backend};
  }
  void load_file(const std::vector<const Case*>& cases, Size threads);
  void make_group(const Case& point);
  void measure_machines(const std::vector<const Case*>& cases);

  Timer clock_;
  MachineProbe probe_;
  nlohmann::json document_;
  /// Host and processors of each rank, on rank 0.
  std::vector<nlohmann::json> processors_;
  BackendFacts facts_;
  std::map<Backend, Communicator> worlds_;
  std::map<GroupKey, Group> groups_;
  std::optional<Machine> given_machine_;  ///< from the options' file, on rank 0
  std::map<GroupKey, Machine> machines_;  ///< as measured
};

}  // namespace tessera::bench
