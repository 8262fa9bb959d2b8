// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include <tessera/base/for_each.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/view.hpp>
#include <tessera/process/agreement.hpp>
#include <tessera/process/gpu.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/kokkos_start.hpp>
#include <tessera/process/launch.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/mpi_error.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/process/same_arguments.hpp>
#include <tessera/process/share_text.hpp>
#include <tessera/process/threads.hpp>
#include <tessera/process/watchdog.hpp>

namespace tessera {
namespace {

std::mutex abort_mutex;
AbortObserver abort_observer;

bool mpi_is_initialized() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

class MpiSession {
 public:
  MpiSession(int& argc, char**& argv, const std::optional<Launch>& launch)
      : owned_(!mpi_is_initialized()) {
    if (launch) set_log_rank(launch->rank);  // until MPI has started
    if (!owned_ && !mpi_is_running())
      throw Error(ExitCode::usage, "MPI has already been finalized");
    int provided = MPI_THREAD_SINGLE;
    if (owned_) {
      const WaitLimit limit("MPI_Init_thread", timeout_seconds());
      MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    } else {
      MPI_Query_thread(&provided);
    }
    thread_level = provided == MPI_THREAD_MULTIPLE     ? "multiple"
                   : provided == MPI_THREAD_SERIALIZED ? "serialized"
                   : provided == MPI_THREAD_FUNNELED   ? "funneled"
                                                       : "single";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const WaitLimit limit("the start", timeout_seconds());
    MPI_Comm_dup(MPI_COMM_WORLD, &control);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
  }
  ~MpiSession() {
    if (!mpi_is_running()) return;
    const WaitLimit limit("the end of MPI", timeout_seconds());
    MPI_Comm_free(&node);
    MPI_Comm_free(&control);
    if (owned_) MPI_Finalize();
  }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank = 0, size = 1, local_rank = 0;
  const char* thread_level = "single";
  MPI_Comm control = MPI_COMM_NULL;  ///< all ranks; for messages of the runtime
  MPI_Comm node = MPI_COMM_NULL;

 private:
  bool owned_;
};

std::vector<std::string> texts_of_node(const MpiSession& mpi, const std::string& mine,
                                       const Site& site = Site::current()) {
  const WaitLimit limit("the start", timeout_seconds(), site);
  return gather_texts(mpi.node, mine);
}

/// Returns the arguments of rank 0. None of them holds a null character.
std::vector<std::string> arguments_of_first(const MpiSession& mpi,
                                            const std::vector<std::string>& mine,
                                            const Site& site = Site::current()) {
  const WaitLimit limit("the start", timeout_seconds(), site);
  const std::string first = broadcast_text(mpi.control, join(mine, std::string_view("\0", 1)));
  return mine.empty() && first.empty() ? mine : split_text(first, '\0');
}

/// If a rank has failed, every rank throws its Error. collectively() calls it.
void raise_first_failure(const MpiSession& mpi, const Outcome& mine, const Site& site) {
  const WaitLimit limit("the start", timeout_seconds(), site);
  const Outcome first = first_failure(mpi.control, mine).named();
  if (first.failed()) throw Error(first.code, first.message);
}

/// Checks the GPUs before Kokkos starts: Kokkos would end the process without an error line.
void check_gpu_request(const std::vector<std::string>& arguments) {
  const std::optional<int> visible = visible_gpus();
  const auto asked = asked_number(arguments, std::getenv, "device-id");
  if (visible) return check_gpus(*visible, asked);
  // A variable may be meant for other programs.
  if (asked && asked->name.starts_with("--"))
    throw ConfigError(asked->name, std::to_string(asked->number),
                      "this Tessera was built without GPUs");
}

bool is_allowed(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

/// Kokkos has picked a GPU on each rank.
void check_shared_gpus(const MpiSession& mpi) {
  std::optional<Gpu> gpu;
  collectively(mpi, [&] { gpu = own_gpu(); });
  if (!gpu) return;
  const std::vector<std::string> identities = texts_of_node(mpi, gpu->identity);
  collectively(mpi, [&] {
    const std::optional<std::string> error = shared_gpu_error(identities);
    if (error && !is_allowed("TESSERA_ALLOW_SHARED_GPU")) throw Error(ExitCode::usage, *error);
  });
}

#if defined(KOKKOS_ENABLE_OPENMP) || defined(KOKKOS_ENABLE_THREADS)
constexpr bool has_host_threads = true;
#else
constexpr bool has_host_threads = false;
#endif

/// Returns the cores that each rank of the node may run on. Kokkos binds threads later.
std::vector<std::vector<int>> cores_of_node(const MpiSession& mpi) {
  nlohmann::json own = nlohmann::json::array();
  for (const auto& [core, processors] : own_cores()) own.push_back(core);
  std::vector<std::vector<int>> cores;
  for (const std::string& text : texts_of_node(mpi, own.dump()))
    cores.push_back(nlohmann::json::parse(text));
  return cores;
}

/// Rank 0 warns if the threads of its node share cores.
void warn_of_shared_cores(const MpiSession& mpi, const std::vector<std::vector<int>>& cores) {
  int threads = 0;
  const int own = Kokkos::DefaultHostExecutionSpace().concurrency();
  for (const std::string& text : texts_of_node(mpi, std::to_string(own)))
    threads += std::stoi(text);
  const std::string warning = shared_cores_warning(cores, threads);
  if (!warning.empty() && !is_allowed("TESSERA_ALLOW_SHARED_CORES")) log_warning(warning);
}

class KokkosSession {
 public:
  KokkosSession(int& argc, char** argv, const std::optional<int>& threads)
      : owned_(!Kokkos::is_initialized()) {
    if (owned_) initialize_kokkos(argc, argv, threads);
  }
  ~KokkosSession() {
    if (owned_ && Kokkos::is_initialized()) Kokkos::finalize();
  }
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;

 private:
  bool owned_;
};

}  // namespace

struct Runtime::State {
  // Members end in the reverse order of their start.
  std::vector<std::string> arguments;
  std::optional<Launch> launch;
  MpiSession mpi;
  BlasStatus blas;
  std::optional<KokkosSession> kokkos;
  std::optional<ThreadBinding> binding;

  State(int& argc, char**& argv)
      : arguments(argv, argv + argc),
        launch(detect_launch(std::getenv)),
        mpi(argc, argv, launch),
        blas(check_blas()) {
    if (launch) check_launch(*launch, mpi.size);
    set_log_rank(mpi.rank);
    collectively(mpi, check_timeout_variable);
    collectively(mpi, [&] { check_gpu_request(arguments); });
    const std::vector<std::vector<int>> cores = cores_of_node(mpi);
    std::optional<int> threads;
    collectively(mpi, [&] {
      // Kokkos gets the number from the user, or has no threads.
      const std::optional<AskedNumber> asked = asked_threads(arguments, std::getenv);
      if (asked) check_threads(*asked, cpu_set(), has_host_threads);
      if (has_host_threads && !asked) threads = threads_of_rank(mpi.local_rank, cores);
    });
    collectively(mpi, [&] {
      const bool starts_kokkos = !Kokkos::is_initialized();
      kokkos.emplace(argc, argv, threads);
      serial_below();  // rejects a bad value
      const int concurrency = Kokkos::DefaultHostExecutionSpace().concurrency();
      if (starts_kokkos && should_bind_threads(std::getenv, mpi.local_rank, cores, concurrency))
        binding.emplace();
      blas.threads = limit_blas_threads(concurrency);
    });
    check_shared_gpus(mpi);
    warn_of_shared_cores(mpi, cores);
    if (!blas.advice.empty() && std::getenv("OPENBLAS_CORETYPE") == nullptr)
      log_warning(fmt::format("OpenBLAS {} uses its kernels for {}; {}", blas.blas->version,
                              blas.blas->core, blas.advice));
  }
};

Runtime::Runtime(int& argc, char**& argv) : state_(std::make_unique<State>(argc, argv)) {}

Runtime::~Runtime() = default;

int Runtime::world_rank() const { return state_->mpi.rank; }
int Runtime::world_size() const { return state_->mpi.size; }
int Runtime::local_rank() const { return state_->mpi.local_rank; }
const char* Runtime::thread_level() const { return state_->mpi.thread_level; }
const BlasStatus& Runtime::blas() const { return state_->blas; }
const std::vector<std::string>& Runtime::arguments() const { return state_->arguments; }

void Runtime::check_same_arguments() const {
  const std::vector<std::string> mine(state_->arguments.begin() + 1, state_->arguments.end());
  const std::vector<std::string> first = arguments_of_first(state_->mpi, mine);
  collectively(state_->mpi, [&] {
    const std::string error = other_arguments_error(mine, first, world_rank());
    if (!error.empty()) throw Error(ExitCode::usage, error);
  });
}

Outcome Runtime::agree(const Outcome& mine, double grace_seconds) const {
  // A rank that failed ends the job itself after its grace, with a line that says more.
  const double limit = timeout_seconds() > 0 ? timeout_seconds() + grace_seconds : 0;
  const WaitLimit wait(end_of_all_ranks(limit));
  return first_failure(state_->mpi.control, mine, grace_seconds).named();
}

void observe_abort(AbortObserver observer) {
  const std::lock_guard lock(abort_mutex);
  abort_observer = std::move(observer);
}

void abort_job(ExitCode code, const std::string& reason) {
  AbortObserver observer;
  {
    const std::lock_guard lock(abort_mutex);
    observer = std::exchange(abort_observer, {});
  }
  if (observer) observer(code, reason);
  std::fflush(nullptr);
  // Launchers drop output that they have not forwarded when the job ends.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (mpi_is_running()) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

}  // namespace tessera
