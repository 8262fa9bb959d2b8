// SPDX-License-Identifier: Apache-2.0
// Where a result comes from: the build, its libraries, the machine and the call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/process/launch.hpp>

namespace tessera {

class Runtime;

/// The version of the library, "major.minor.patch".
std::string_view version();

/// What this folder does not know of messages, and comm does (message_library()).
struct MessageLibrary {
  std::optional<std::string> nccl_version{};  ///< none if built without
  std::optional<std::string> backend{};       ///< which moves the bytes of device Views, and why
};

/// Version, revision and build of this program, its arguments, and the time.
nlohmann::json build_provenance(const std::vector<std::string>& arguments);

/// The document that results carry (fields: bench/RESULTS.md); null for what does not exist here.
/// Its "rank" is this rank; `nodes` tells how many nodes with how many ranks each there are. Not
/// collective.
nlohmann::json collect_provenance(const Runtime& runtime, const MessageLibrary& messages = {},
                                  const std::optional<std::string>& nodes = {});

/// What differs between ranks: its number, process, host, processor, the processors that it may run
/// on ("0-3,8"), name and index of its GPU.
nlohmann::json collect_rank_provenance(const Runtime& runtime);

/// Where these ranks (collect_rank_provenance(), in their order) run, nodes alike together, so that
/// it does not grow with the ranks of equal nodes: [{"cpu_model": "...", "cpu_sets": ["0-3",
/// "4-7"], "gpus": [...], "hosts": {"node7": "0-1", "node8": "2-3"}}]. Lists are of a node's ranks
/// in their order, and have one entry where it holds for all.
nlohmann::json placement_json(const std::vector<nlohmann::json>& ranks);

/// Of the variables "NAME=value", those that may appear in a result: settings of the libraries,
/// never the user's own and never what a launcher passes to its children in secret.
std::map<std::string, std::string> allowed_environment(const char* const* environment);

/// Identity of the batch job from the scheduler's variable: "SLURM_JOB_ID=123".
std::optional<std::string> scheduler_job(const Environment& environment);

/// "2024-05-17T09:30:00Z", of now.
std::string utc_time();

/// Lines "key: value" with the values below each other.
std::string provenance_text(const nlohmann::json& provenance);

}  // namespace tessera
