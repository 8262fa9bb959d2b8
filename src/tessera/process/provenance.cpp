// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/text.hpp>
#include <tessera/base/view.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera_build_info.hpp>

namespace tessera {
namespace {

using Json = nlohmann::json;

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return one_line(std::string_view(text.data()));
}

Json cuda_version() {
#ifdef KOKKOS_ENABLE_CUDA
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  return nullptr;
#endif
}

/// Beginnings of "NAME=value".
constexpr std::string_view allowed =
    "OMP_ GOMP_ KMP_ OPENBLAS_ KOKKOS_ NCCL_ UCX_ TESSERA_ MPICH_ ONEDNN_ DNNL_ OMPI_MCA_btl "
    "OMPI_MCA_pml OMPI_MCA_mtl OMPI_MCA_coll OMPI_MCA_osc OMPI_MCA_io OMPI_MCA_mpi_ OMPI_MCA_opal_ "
    "OMPI_MCA_hwloc_ OMPI_MCA_rmaps CUDA_VISIBLE_DEVICES= MKL_NUM_THREADS= BLIS_NUM_THREADS= "
    "SLURM_NTASKS= SLURM_JOB_NUM_NODES= SLURM_CPUS_PER_TASK= SLURM_JOB_PARTITION=";

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

// Arguments and variables may hold bytes that are not UTF-8. JSON cannot hold them.
Json printable(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string_view version() { return build_info::version; }

std::map<std::string, std::string> allowed_environment(const char* const* environment) {
  const std::vector<std::string> prefixes = split_text(allowed, ' ');
  std::map<std::string, std::string> result;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    const auto begins_entry = [&](const std::string& prefix) { return entry.starts_with(prefix); };
    if (equals != entry.npos && std::ranges::any_of(prefixes, begins_entry))
      result.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return result;
}

std::optional<std::string> scheduler_job(const Environment& environment) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "LSB_JOBID"}) {
    if (const char* value = environment(name)) return fmt::format("{}={}", name, value);
  }
  return std::nullopt;
}

std::string utc_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

Json collect_rank_provenance(const Runtime& runtime) {
  const std::optional<Gpu> gpu = own_gpu();
  return {{"rank", runtime.world_rank()},
          {"process", getpid()},
          {"host", host_name()},
          {"cpu_model", cpu_model()},
          {"cpu_set", number_ranges(cpu_set())},
          {"gpu", gpu ? Json(fmt::format("{} ({})", gpu->name, gpu->index)) : Json()}};
}

Json placement_json(const std::vector<Json>& ranks) {
  struct Node {
    Json kind;
    std::vector<int> ranks;
  };
  std::map<std::string, Node> nodes;
  for (const Json& rank : ranks) {
    Node& node = nodes[rank.at("host")];
    node.kind["cpu_model"] = rank.at("cpu_model");
    node.kind["cpu_sets"].push_back(rank.at("cpu_set"));
    node.kind["gpus"].push_back(rank.at("gpu"));
    node.ranks.push_back(rank.at("rank"));
  }
  std::map<Json, Json> hosts;  // by the kind of node
  for (auto& [host, node] : nodes) {
    for (const char* key : {"cpu_sets", "gpus"}) {
      Json& values = node.kind[key];
      if (std::count(values.begin(), values.end(), values.front()) == std::ssize(values))
        values = Json::array({values.front()});
    }
    hosts[node.kind][host] = number_ranges(node.ranks);
  }
  Json groups = Json::array();
  for (const auto& [kind, names] : hosts) {
    groups.push_back(kind);
    groups.back()["hosts"] = names;
  }
  return groups;
}

Json build_provenance(const std::vector<std::string>& arguments) {
  Json printed = Json::array();
  for (const std::string& argument : arguments) printed.push_back(printable(argument));
  return {{"version", version()},
          {"git_revision", build_info::git_revision},
          {"git_dirty", build_info::git_dirty},
          {"build_type", build_info::build_type},
          {"compiler", build_info::compiler},
          {"cxx_flags", build_info::cxx_flags},
          {"arguments", printed},
          {"time", utc_time()}};
}

Json collect_provenance(const Runtime& runtime, const Json& messages,
                        const std::optional<std::string>& nodes) {
  Json environment = Json::object();
  for (const auto& [name, value] : allowed_environment(environ))
    environment[printable(name)] = printable(value);
  Json provenance = build_provenance(runtime.arguments());
  provenance.update({
      {"kokkos",
       {{"version", kokkos_version()},
        {"backend", ExecSpace::name()},
        {"concurrency", ExecSpace().concurrency()}}},
      {"kokkos_kernels", {{"version", kokkos_kernels_version()}}},
      {"blas", runtime.blas().text},
      {"blas_library", runtime.blas().library},
      {"mpi", {{"library", mpi_library()}}},
      {"cuda_version", cuda_version()},
      {"hdf5_version", build_info::hdf5_version.empty() ? Json() : Json(build_info::hdf5_version)},
      {"world_size", runtime.world_size()},
      {"nodes", or_null(nodes)},
      {"scheduler_job", or_null(scheduler_job(std::getenv))},
      {"environment", environment},
      {"rank", collect_rank_provenance(runtime)},
  });
  provenance.update(messages);
  return provenance;
}

std::string provenance_text(const Json& provenance) {
  std::map<std::string, std::string> lines;
  const auto add = [&](const std::string& key, const Json& value) {
    lines[key + ":"] =
        one_line(value.is_null()     ? "none"
                 : value.is_string() ? value.get<std::string>()
                 : value.is_array()  ? join(value.get<std::vector<std::string>>(), " ")
                                     : value.dump());
  };
  for (const auto& [key, value] : provenance.items()) {
    if (!value.is_object()) add(key, value);
    if (value.is_object())
      for (const auto& [inner, one] : value.items()) add(key + "." + inner, one);
  }
  std::size_t width = 0;
  for (const auto& [key, value] : lines) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : lines) text += fmt::format("{:<{}} {}\n", key, width, value);
  return text;
}

}  // namespace tessera
