// SPDX-License-Identifier: Apache-2.0
// The origin of a result: the build, its libraries, the machine and the call.
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

/// Returns version, revision and build of this program, its arguments, and the time.
nlohmann::json build_provenance(const std::vector<std::string>& arguments);

/// Returns the document that results carry (fields: bench/RESULTS.md). Fields that do not apply are
/// null. "rank" describes this rank; `messages` has the fields of message_library() of comm;
/// `nodes` gives the numbers of nodes and ranks as text. Not collective.
nlohmann::json collect_provenance(const Runtime& runtime,
                                  const nlohmann::json& messages = nlohmann::json::object(),
                                  const std::optional<std::string>& nodes = {});

/// Returns the part that differs between ranks: rank, process, host, processor, the processors that
/// it may run on ("0-3,8"), name and index of its GPU.
nlohmann::json collect_rank_provenance(const Runtime& runtime);

/// Returns where ranks run, given the collect_rank_provenance() of each. Equal nodes share an
/// entry:
/// [{"cpu_model": "...", "cpu_sets": ["0-3", "4-7"], "gpus": [...], "hosts": {"node7": "0-1",
/// "node8": "2-3"}}]. Lists have one entry per rank of a node, or one if all ranks are alike.
nlohmann::json placement_json(const std::vector<nlohmann::json>& ranks);

/// Selects the variables "NAME=value" that may appear in a result: settings of the libraries. Never
/// includes the user's own variables, or secrets that a launcher passes to its processes.
std::map<std::string, std::string> allowed_environment(const char* const* environment);

/// Returns the identity of the batch job, such as "SLURM_JOB_ID=123".
std::optional<std::string> scheduler_job(const Environment& environment);

/// Returns the current time, such as "2024-05-17T09:30:00Z".
std::string utc_time();

/// Returns lines "key: value" with aligned values. Nested keys are written as "mpi.library".
std::string provenance_text(const nlohmann::json& provenance);

}  // namespace tessera
