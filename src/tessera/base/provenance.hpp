// SPDX-License-Identifier: Apache-2.0
// Where a result comes from: the build, its libraries, the machine and the call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <tessera/base/launch.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

class Runtime;

/// What differs between ranks; the trainer gathers it.
struct RankProvenance {
  int rank = 0;
  int process = 0;  ///< process id
  std::string host;
  std::string cpu_model;
  std::string cpu_set;             ///< processors that it may run on: "0-3,8"
  std::optional<std::string> gpu;  ///< name and index; none without CUDA
};

struct Provenance {
  std::string version;
  std::string git_revision;
  bool git_dirty = false;
  std::string build_type;
  std::string compiler;
  std::string cxx_flags;

  std::string kokkos_version;
  std::string kokkos_backend;  ///< default execution space: "Serial", "OpenMP", "Cuda"
  Size kokkos_concurrency = 0;
  std::vector<std::string> kokkos_backends;       ///< all that were built in
  std::vector<std::string> kokkos_configuration;  ///< what Kokkos prints about itself
  std::string kokkos_kernels_version;
  std::vector<std::string> kokkos_kernels_libraries;  ///< third-party libraries it calls

  std::string blas;
  std::string blas_library;
  std::string mpi_library;
  std::string mpi_standard;      ///< "3.1"
  std::string mpi_thread_level;  ///< what MPI granted
  std::optional<std::string> cuda_version;
  std::optional<std::string> nccl_version;  ///< none: built without

  int world_size = 1;
  std::optional<std::string> scheduler_job;  ///< "SLURM_JOB_ID=123"
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  ///< from a fixed list of names
  std::string time;                                ///< ISO 8601, UTC
  RankProvenance rank;                             ///< of the rank that collected this
};

/// Not collective. This folder knows no NCCL: whoever does gives its version.
Provenance collect_provenance(const Runtime& runtime,
                              std::optional<std::string> nccl_version = std::nullopt);
RankProvenance collect_rank_provenance(const Runtime& runtime);

/// Of the variables "NAME=value", those that may appear in a result: settings of the libraries,
/// never the user's own and never what a launcher passes to its children in secret.
std::map<std::string, std::string> allowed_environment(const char* const* environment);

/// Identity of the batch job from the scheduler's variable.
std::optional<std::string> scheduler_job(const Environment& environment);

/// "2024-05-17T09:30:00Z", of now.
std::string utc_time();

nlohmann::json to_json(const RankProvenance& rank);
nlohmann::json to_json(const Provenance& provenance);

/// Lines "key: value" with the values below each other.
std::string to_text(const Provenance& provenance);

}  // namespace tessera
