// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <KokkosKernels_config.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <mpi.h>

#include <tessera/base/gpu.hpp>
#include <tessera/base/host_info.hpp>
#include <tessera/base/kokkos_compat.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/runtime.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/view.hpp>
#include <tessera_build_info.hpp>

namespace tessera {
namespace {

std::vector<std::string> kokkos_backends() {
  std::vector<std::string> names;
#ifdef KOKKOS_ENABLE_SERIAL
  names.emplace_back("Serial");
#endif
#ifdef KOKKOS_ENABLE_OPENMP
  names.emplace_back("OpenMP");
#endif
#ifdef KOKKOS_ENABLE_THREADS
  names.emplace_back("Threads");
#endif
#ifdef KOKKOS_ENABLE_CUDA
  names.emplace_back("Cuda");
#endif
#ifdef KOKKOS_ENABLE_HIP
  names.emplace_back("HIP");
#endif
#ifdef KOKKOS_ENABLE_SYCL
  names.emplace_back("SYCL");
#endif
  return names;
}

std::vector<std::string> kokkos_kernels_libraries() {
  std::vector<std::string> names;
#ifdef KOKKOSKERNELS_ENABLE_TPL_BLAS
  names.emplace_back("BLAS");
#endif
#ifdef KOKKOSKERNELS_ENABLE_TPL_MKL
  names.emplace_back("MKL");
#endif
#ifdef KOKKOSKERNELS_ENABLE_TPL_ARMPL
  names.emplace_back("ARMPL");
#endif
#ifdef KOKKOSKERNELS_ENABLE_TPL_CUBLAS
  names.emplace_back("CUBLAS");
#endif
#ifdef KOKKOSKERNELS_ENABLE_TPL_ROCBLAS
  names.emplace_back("ROCBLAS");
#endif
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

std::optional<std::string> cuda_version() {
#ifdef KOKKOS_ENABLE_CUDA
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  return std::nullopt;
#endif
}

constexpr std::array allowed_prefixes = {
    "OMP_",           "OPENBLAS_",    "KOKKOS_",       "NCCL_",          "UCX_",
    "TESSERA_",       "OMPI_MCA_btl", "OMPI_MCA_pml",  "OMPI_MCA_mtl",   "OMPI_MCA_coll",
    "OMPI_MCA_osc",   "OMPI_MCA_io",  "OMPI_MCA_mpi_", "OMPI_MCA_opal_", "OMPI_MCA_hwloc_",
    "OMPI_MCA_rmaps", "MPICH_"};
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

}  // namespace

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

RankProvenance collect_rank_provenance(const Runtime& runtime) {
  RankProvenance rank;
  rank.rank = runtime.world_rank();
  rank.process = static_cast<int>(getpid());
  rank.host = host_name();
  rank.cpu_model = cpu_model();
  rank.cpu_set = number_ranges(cpu_set());
  if (const std::optional<int> device = runtime.device()) {
    rank.gpu = fmt::format("{} ({})", device_name(*device), *device);
  }
  return rank;
}

Provenance collect_provenance(const Runtime& runtime, std::optional<std::string> nccl_version) {
  Provenance p;
  p.version = build_info::version;
  p.git_revision = build_info::git_revision;
  p.git_dirty = build_info::git_dirty;
  p.build_type = build_info::build_type;
  p.compiler = build_info::compiler;
  p.cxx_flags = build_info::cxx_flags;
  p.kokkos_version = kokkos_version();
  p.kokkos_backend = ExecSpace::name();
  p.kokkos_concurrency = ExecSpace().concurrency();
  p.kokkos_backends = kokkos_backends();
  p.kokkos_configuration = kokkos_configuration();
  p.kokkos_kernels_version = kokkos_kernels_version();
  p.kokkos_kernels_libraries = kokkos_kernels_libraries();
  p.blas = describe(runtime.blas());
  p.blas_library = runtime.blas().library;
  p.mpi_library = mpi_library();
  p.mpi_standard = mpi_standard();
  p.mpi_thread_level = runtime.thread_level();
  p.cuda_version = cuda_version();
  p.nccl_version = std::move(nccl_version);
  p.world_size = runtime.world_size();
  p.scheduler_job = scheduler_job(std::getenv);
  p.arguments = runtime.arguments();
  p.environment = allowed_environment(environ);
  p.time = utc_time();
  p.rank = collect_rank_provenance(runtime);
  return p;
}

}  // namespace tessera
