// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/process/provenance.hpp>

namespace tessera {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value, std::string_view separator = ", ") {
  if (value.is_null()) return "none";
  if (value.is_array()) return join(value.get<std::vector<std::string>>(), separator);
  if (!value.is_string()) return value.dump();
  return value.get<std::string>().empty() ? "unknown" : value.get<std::string>();
}

}  // namespace

std::string provenance_text(const Json& provenance) {
  const auto at = [&](const char* path) {
    return text_of(provenance.at(Json::json_pointer(path)));
  };
  const std::string changes = provenance.at("git_dirty") ? " (with local changes)" : "";
  std::vector<std::pair<std::string, std::string>> lines = {
      {"version", at("/version")},
      {"git revision", at("/git_revision") + changes},
      {"build", at("/build_type")},
      {"compiler", at("/compiler")},
      {"flags", at("/cxx_flags")},
      {"Kokkos",
       fmt::format("{} ({}; built with {}; concurrency {})", at("/kokkos/version"),
                   at("/kokkos/backend"), at("/kokkos/backends"), at("/kokkos/concurrency"))},
      {"Kokkos Kernels",
       fmt::format("{} ({})", at("/kokkos_kernels/version"), at("/kokkos_kernels/libraries"))},
      {"BLAS", at("/blas")},
      {"BLAS library", at("/blas_library")},
      {"MPI", at("/mpi/library")},
      {"MPI standard", at("/mpi/standard")},
      {"MPI thread level", at("/mpi/thread_level")},
      {"CUDA", at("/cuda_version")},
      {"NCCL", at("/nccl_version")},
      {"HDF5", at("/hdf5_version")},
      {"message backend", at("/message_backend")},
      {"ranks", at("/world_size")},
      {"nodes", at("/nodes")},
      {"host", at("/rank/host")},
      {"processor", at("/rank/cpu_model")},
      {"processor set", at("/rank/cpu_set")},
      {"GPU", at("/rank/gpu")},
      {"scheduler job", at("/scheduler_job")},
      {"arguments", text_of(provenance.at("arguments"), " ")},
      {"time", at("/time")},
  };
  for (const auto& [name, value] : provenance.at("environment").items()) {
    lines.emplace_back(name, text_of(value));
  }

  std::size_t width = 0;
  for (const auto& [key, value] : lines) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : lines) {
    text += fmt::format("{:<{}} {}\n", key + ":", width + 1, one_line(value));
  }
  return text;
}

}  // namespace tessera
