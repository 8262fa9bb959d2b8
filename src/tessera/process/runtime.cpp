// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
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
    if (owned_) {
      const WaitLimit limit("MPI_Init_thread", timeout_seconds());
      int provided = MPI_THREAD_SINGLE;
      MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    }
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

/// If a rank has failed, every rank throws its Error. collectively() calls it.
void raise_first_failure(const MpiSession& mpi, const Outcome& mine, const Site& site) {
  const WaitLimit limit("the start", timeout_seconds(), site);
  const Outcome first = first_failure(mpi.control, mine).named;
  if (first.failed()) throw Error(first.code, first.message);
}

/// Checks the GPUs before Kokkos starts: Kokkos would end the process without an error line.
void check_gpu_request(const std::vector<std::string>& arguments) {
  const std::optional<int> visible = visible_gpus();
  const auto asked = asked_number(arguments, std::getenv, "device-id");
  if (visible && *visible < 1)
    throw Error(
        ExitCode::usage,
        "this process sees no GPU, but this Tessera was built for GPUs: check the job's GPU "
        "request and CUDA_VISIBLE_DEVICES (without a GPU only `tessera plan`, --help and "
        "--version work)");
  if (visible && asked && asked->number >= *visible)
    throw ConfigError(asked->name, std::to_string(asked->number),
                      "this process sees {}, counted from 0", counted(*visible, "GPU"));
  // A variable may be meant for other programs.
  if (!visible && asked && asked->name.starts_with("--"))
    throw ConfigError(asked->name, std::to_string(asked->number),
                      "this Tessera was built without GPUs");
}

bool is_allowed(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

/// Each rank has its GPU.
void check_shared_gpus(const MpiSession& mpi) {
  std::optional<Gpu> gpu;
  collectively(mpi, [&] { gpu = own_gpu(); });
  if (!gpu) return;
  const std::vector<std::string> gpus = texts_of_node(mpi, gpu->identity);
  collectively(mpi, [&] {
    for (auto own = gpus.begin(); own != gpus.end(); ++own) {
      const auto first = std::find(gpus.begin(), own, *own);
      if (first == own || is_allowed("TESSERA_ALLOW_SHARED_GPU")) continue;
      throw Error(ExitCode::usage,
                  "ranks {} and {} of a node with {} ranks share one GPU: start one rank per GPU, "
                  "or set TESSERA_ALLOW_SHARED_GPU=1 to allow this",
                  first - gpus.begin(), own - gpus.begin(), gpus.size());
    }
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

class KokkosSession {
 public:
  KokkosSession(int& argc, char** argv, const std::optional<int>& threads,
                const std::optional<int>& gpu)
      : owned_(!Kokkos::is_initialized()) {
    if (owned_) initialize_kokkos(argc, argv, threads, gpu);
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

  State(int& argc, char**& argv)
      : arguments(argv, argv + argc), launch(detect_launch(std::getenv)), mpi(argc, argv, launch) {
    if (launch && launch->size > 1 && mpi.size == 1)
      throw Error(ExitCode::usage,
                  "the launcher started {} processes ({}), but MPI_COMM_WORLD has 1: start them "
                  "with the mpirun, mpiexec or srun of this program's MPI library, which tessera "
                  "info names",
                  launch->size, launch->variable);
    set_log_rank(mpi.rank);
    collectively(mpi, check_timeout_variable);
    collectively(mpi, [&] {
      check_kokkos_arguments(arguments);
      check_gpu_request(arguments);
    });
    const std::vector<std::vector<int>> cores = cores_of_node(mpi);
    std::optional<int> threads;
    collectively(mpi, [&] {
      const std::optional<AskedNumber> asked = asked_threads(arguments, std::getenv);
      if (asked) check_threads(*asked, cpu_set(), has_host_threads);
      if (has_host_threads)
        threads = asked ? asked->number : threads_of_rank(mpi.local_rank, cores);
    });
    int concurrency = 1;
    collectively(mpi, [&] {
      const bool starts_kokkos = !Kokkos::is_initialized();
      kokkos.emplace(argc, argv, threads,
                     gpu_of_rank(arguments, std::getenv, mpi.local_rank, visible_gpus()));
      serial_below();  // rejects a bad value
      concurrency = Kokkos::DefaultHostExecutionSpace().concurrency();
      if (starts_kokkos && should_bind_threads(std::getenv, mpi.local_rank, cores, concurrency))
        bind_threads();
      blas = start_blas(concurrency);
    });
    check_shared_gpus(mpi);
    int threads_of_node = 0;
    for (const std::string& text : texts_of_node(mpi, std::to_string(concurrency)))
      threads_of_node += std::stoi(text);
    const std::string warning = shared_cores_warning(cores, threads_of_node);
    if (!warning.empty() && !is_allowed("TESSERA_ALLOW_SHARED_CORES")) log_warning(warning);
    if (!blas.advice.empty() && std::getenv("OPENBLAS_CORETYPE") == nullptr)
      log_warning(blas.advice);
  }
};

Runtime::Runtime(int& argc, char**& argv) : state_(std::make_unique<State>(argc, argv)) {}

Runtime::~Runtime() = default;

int Runtime::world_rank() const { return state_->mpi.rank; }
int Runtime::world_size() const { return state_->mpi.size; }
int Runtime::local_rank() const { return state_->mpi.local_rank; }
const BlasStatus& Runtime::blas() const { return state_->blas; }
const std::vector<std::string>& Runtime::arguments() const { return state_->arguments; }

void Runtime::check_same_arguments() const {
  std::vector<std::string> mine(state_->arguments.begin() + 1, state_->arguments.end());
  std::erase_if(mine, [](auto& argument) { return argument.starts_with("--kokkos-"); });
  std::ranges::sort(mine);
  const WaitLimit limit("the start", timeout_seconds());
  // No argument holds a null character.
  const std::string all = broadcast_text(state_->mpi.control, join(mine, {"\0", 1}));
  std::vector<std::string> first = split_text(all, '\0');
  if (all.empty()) first.clear();
  collectively(state_->mpi, [&] {
    std::vector<std::string> extra;
    for (const bool is_mine : {true, false}) {
      std::ranges::set_difference(is_mine ? mine : first, is_mine ? first : mine,
                                  std::back_inserter(extra));
      if (extra.empty()) continue;
      throw Error(ExitCode::usage,
                  "{} is given on rank {} but not on rank {}; every rank needs the same arguments",
                  one_line(excerpt(extra.front())), is_mine ? world_rank() : 0,
                  is_mine ? 0 : world_rank());
    }
  });
}

Outcome Runtime::agree(const Outcome& mine, double grace_seconds) const {
  // A rank that failed ends the job itself after its grace, with a line that says more.
  const double limit = timeout_seconds() > 0 ? timeout_seconds() + grace_seconds : 0;
  const WaitLimit wait(end_of_all_ranks(limit));
  return first_failure(state_->mpi.control, mine, grace_seconds).named;
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
