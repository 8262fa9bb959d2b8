// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/provenance.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

nlohmann::json or_null(const std::optional<std::string>& text) {
  return text ? nlohmann::json(*text) : nlohmann::json(nullptr);
}

// Arguments and variables may hold bytes that are not UTF-8, which JSON cannot.
std::string printable(const std::string& text) {
  const nlohmann::json json(text);
  return nlohmann::json::parse(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace

nlohmann::json to_json(const RankProvenance& rank) {
  return {{"rank", rank.rank},           {"process", rank.process}, {"host", rank.host},
          {"cpu_model", rank.cpu_model}, {"cpu_set", rank.cpu_set}, {"gpu", or_null(rank.gpu)}};
}

nlohmann::json to_json(const Provenance& p) {
  nlohmann::json environment = nlohmann::json::object();
  for (const auto& [name, value] : p.environment) environment[printable(name)] = printable(value);
  nlohmann::json arguments = nlohmann::json::array();
  for (const std::string& argument : p.arguments) arguments.push_back(printable(argument));
  return {
      {"version", p.version},
      {"git_revision", p.git_revision},
      {"git_dirty", p.git_dirty},
      {"build_type", p.build_type},
      {"compiler", p.compiler},
      {"cxx_flags", p.cxx_flags},
      {"kokkos",
       {{"version", p.kokkos_version},
        {"backend", p.kokkos_backend},
        {"concurrency", p.kokkos_concurrency},
        {"backends", p.kokkos_backends},
        {"configuration", p.kokkos_configuration}}},
      {"kokkos_kernels",
       {{"version", p.kokkos_kernels_version}, {"libraries", p.kokkos_kernels_libraries}}},
      {"blas", p.blas},
      {"blas_library", p.blas_library},
      {"mpi",
       {{"library", p.mpi_library},
        {"standard", p.mpi_standard},
        {"thread_level", p.mpi_thread_level}}},
      {"cuda_version", or_null(p.cuda_version)},
      {"nccl_version", or_null(p.nccl_version)},
      {"world_size", p.world_size},
      {"scheduler_job", or_null(p.scheduler_job)},
      {"arguments", arguments},
      {"environment", environment},
      {"time", p.time},
      {"rank", to_json(p.rank)},
  };
}

std::string to_text(const Provenance& p) {
  const auto or_none = [](const std::optional<std::string>& text) { return text.value_or("none"); };
  const std::string kokkos =
      fmt::format("{} ({}; built with {}; concurrency {})", p.kokkos_version, p.kokkos_backend,
                  join(p.kokkos_backends), p.kokkos_concurrency);
  std::vector<std::pair<std::string, std::string>> lines = {
      {"version", p.version},
      {"git revision", p.git_revision + (p.git_dirty ? " (with local changes)" : "")},
      {"build", p.build_type},
      {"compiler", p.compiler},
      {"flags", p.cxx_flags},
      {"Kokkos", kokkos},
      {"Kokkos Kernels",
       fmt::format("{} ({})", p.kokkos_kernels_version, join(p.kokkos_kernels_libraries))},
      {"BLAS", p.blas},
      {"BLAS library", p.blas_library.empty() ? "unknown" : p.blas_library},
      {"MPI", p.mpi_library},
      {"MPI standard", p.mpi_standard},
      {"MPI thread level", p.mpi_thread_level},
      {"CUDA", or_none(p.cuda_version)},
      {"NCCL", or_none(p.nccl_version)},
      {"ranks", fmt::format("{}", p.world_size)},
      {"host", p.rank.host},
      {"processor", p.rank.cpu_model},
      {"processor set", p.rank.cpu_set},
      {"GPU", or_none(p.rank.gpu)},
      {"scheduler job", or_none(p.scheduler_job)},
      {"arguments", join(p.arguments, " ")},
      {"time", p.time},
  };
  for (const auto& [name, value] : p.environment) lines.emplace_back(name, value);

  std::size_t width = 0;
  for (const auto& [key, value] : lines) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : lines) {
    text += fmt::format("{:<{}} {}\n", key + ":", width + 1, one_line(value));
  }
  return text;
}

}  // namespace tessera
