// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <span>
#include <sstream>
#include <unistd.h>

#include <KokkosKernels_config.h>
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

// The expansion of a macro as text. It is the macro's name if the macro is not defined.
#define TESSERA_EXPANSION(macro) TESSERA_QUOTE(macro)
#define TESSERA_QUOTE(text) #text

struct Feature {
  const char* name;
  std::string_view expansion;  ///< of its macro
};

constexpr std::array kokkos_backends{
    Feature{"Serial", TESSERA_EXPANSION(KOKKOS_ENABLE_SERIAL)},
    Feature{"OpenMP", TESSERA_EXPANSION(KOKKOS_ENABLE_OPENMP)},
    Feature{"Threads", TESSERA_EXPANSION(KOKKOS_ENABLE_THREADS)},
    Feature{"Cuda", TESSERA_EXPANSION(KOKKOS_ENABLE_CUDA)},
    Feature{"HIP", TESSERA_EXPANSION(KOKKOS_ENABLE_HIP)},
    Feature{"SYCL", TESSERA_EXPANSION(KOKKOS_ENABLE_SYCL)},
};
constexpr std::array kokkos_kernels_libraries{
    Feature{"BLAS", TESSERA_EXPANSION(KOKKOSKERNELS_ENABLE_TPL_BLAS)},
    Feature{"MKL", TESSERA_EXPANSION(KOKKOSKERNELS_ENABLE_TPL_MKL)},
    Feature{"ARMPL", TESSERA_EXPANSION(KOKKOSKERNELS_ENABLE_TPL_ARMPL)},
    Feature{"CUBLAS", TESSERA_EXPANSION(KOKKOSKERNELS_ENABLE_TPL_CUBLAS)},
    Feature{"ROCBLAS", TESSERA_EXPANSION(KOKKOSKERNELS_ENABLE_TPL_ROCBLAS)},
};

std::vector<std::string> enabled(std::span<const Feature> features) {
  std::vector<std::string> names;
  for (const Feature& feature : features) {
    if (!feature.expansion.starts_with("KOKKOS")) names.emplace_back(feature.name);
  }
  return names;
}

std::vector<std::string> kokkos_configuration() {
  std::ostringstream out;
  Kokkos::print_configuration(out, true);
  std::vector<std::string> lines;
  for (const std::string& line : split_text(out.str(), '\n')) {
    const std::string_view text = trim(line);
    if (!text.empty()) lines.emplace_back(text);
  }
  return lines;
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return one_line(std::string_view(text.data()));
}

std::string mpi_standard() {
  int major = 0;
  int minor = 0;
  MPI_Get_version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

Json cuda_version() {
#ifdef KOKKOS_ENABLE_CUDA
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  return nullptr;
#endif
}

constexpr std::array allowed_prefixes = {"OMP_",           "GOMP_",           "KMP_",
                                         "OPENBLAS_",      "KOKKOS_",         "NCCL_",
                                         "UCX_",           "TESSERA_",        "OMPI_MCA_btl",
                                         "OMPI_MCA_pml",   "OMPI_MCA_mtl",    "OMPI_MCA_coll",
                                         "OMPI_MCA_osc",   "OMPI_MCA_io",     "OMPI_MCA_mpi_",
                                         "OMPI_MCA_opal_", "OMPI_MCA_hwloc_", "OMPI_MCA_rmaps",
                                         "MPICH_",         "ONEDNN_",         "DNNL_"};
constexpr std::array allowed_names = {
    "CUDA_VISIBLE_DEVICES", "GOTO_NUM_THREADS",    "MKL_NUM_THREADS",     "BLIS_NUM_THREADS",
    "SLURM_NTASKS",         "SLURM_JOB_NUM_NODES", "SLURM_CPUS_PER_TASK", "SLURM_JOB_PARTITION"};

bool is_allowed(std::string_view name) {
  for (const char* prefix : allowed_prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  for (const char* allowed : allowed_names) {
    if (name == allowed) return true;
  }
  return false;
}

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

// Arguments and variables may hold bytes that are not UTF-8. JSON cannot hold them.
Json printable(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string_view version() { return build_info::version; }

std::map<std::string, std::string> allowed_environment(const char* const* environment) {
  std::map<std::string, std::string> result;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !is_allowed(entry.substr(0, equals))) continue;
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
    std::string host;
    Json kind;
    std::vector<int> ranks;
  };
  std::vector<Node> nodes;
  std::map<std::string, std::size_t> places;
  for (const Json& rank : ranks) {
    const std::string host = rank.at("host");
    const auto [place, is_new] = places.try_emplace(host, nodes.size());
    if (is_new) nodes.push_back({host, {{"cpu_model", rank.at("cpu_model")}}, {}});
    Node& node = nodes[place->second];
    node.kind["cpu_sets"].push_back(rank.at("cpu_set"));
    node.kind["gpus"].push_back(rank.at("gpu"));
    node.ranks.push_back(rank.at("rank"));
  }
  Json groups = Json::array();
  std::map<Json, std::size_t> kinds;
  for (Node& node : nodes) {
    for (const char* key : {"cpu_sets", "gpus"}) {
      Json& values = node.kind[key];
      if (std::count(values.begin(), values.end(), values.front()) == std::ssize(values))
        values = Json::array({values.front()});
    }
    const auto [kind, is_new] = kinds.try_emplace(node.kind, groups.size());
    if (is_new) groups.push_back(node.kind);
    groups[kind->second]["hosts"][node.host] = number_ranges(node.ranks);
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

Json collect_provenance(const Runtime& runtime, const MessageLibrary& messages,
                        const std::optional<std::string>& nodes) {
  Json environment = Json::object();
  for (const auto& [name, value] : allowed_environment(environ)) {
    environment[printable(name)] = printable(value);
  }
  Json provenance = build_provenance(runtime.arguments());
  provenance.update({
      {"kokkos",
       {{"version", kokkos_version()},
        {"backend", ExecSpace::name()},
        {"concurrency", ExecSpace().concurrency()},
        {"backends", enabled(kokkos_backends)},
        {"configuration", kokkos_configuration()}}},
      {"kokkos_kernels",
       {{"version", kokkos_kernels_version()}, {"libraries", enabled(kokkos_kernels_libraries)}}},
      {"blas", describe(runtime.blas())},
      {"blas_library", runtime.blas().library},
      {"mpi",
       {{"library", mpi_library()},
        {"standard", mpi_standard()},
        {"thread_level", runtime.thread_level()}}},
      {"cuda_version", cuda_version()},
      {"nccl_version", or_null(messages.nccl_version)},
      {"hdf5_version", build_info::hdf5_version.empty() ? Json() : Json(build_info::hdf5_version)},
      {"message_backend", or_null(messages.backend)},
      {"world_size", runtime.world_size()},
      {"nodes", or_null(nodes)},
      {"scheduler_job", or_null(scheduler_job(std::getenv))},
      {"environment", environment},
      {"rank", collect_rank_provenance(runtime)},
  });
  return provenance;
}

}  // namespace tessera
