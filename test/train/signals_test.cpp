// SPDX-License-Identifier: Apache-2.0
// Thousands of signals a second leave trainings with large products alone.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/process/stop_signals.hpp>

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::of_kind;
using train_test::trainer_of;

/// Returns a model of this kind with widths of 300 to 1500, and few samples.
Experiment wide(const std::string& name) {
  Experiment setup = of_kind(ModelKind::mlp, DataKind::random, LossKind::mse);
  if (name == "mlp") setup.model.mlp.widths = {300, 1500, 300};
  if (name == "residual_mlp") {
    setup.model.kind = ModelKind::residual_mlp;
    setup.model.residual_mlp = {300, 400, 1200, 2, 300};
  }
  if (name == "transformer" || name == "experts") {
    setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
    setup.model.transformer = {.vocabulary = 300,
                               .context = 16,
                               .width = 320,
                               .heads = 4,
                               .blocks = 1,
                               .inner_width = 640};
    if (name == "experts") {
      setup.model.transformer.experts = 4;
      setup.model.transformer.top_k = 2;
      setup.model.transformer.capacity_factor = 2;
    }
  }
  if (name == "vae") {
    setup = of_kind(ModelKind::vae, DataKind::blobs, LossKind::bce);
    setup.model.vae = {.input_width = 900, .hidden = {1500}, .latent = 300};
  }
  if (name == "pinn") {
    setup = of_kind(ModelKind::pinn, DataKind::poisson_points, LossKind::poisson);
    setup.model.mlp.activation = Activation::tanh;
    setup.model.pinn = {.width = 500, .layers = 3};
  }
  if (name == "fno") {
    setup = of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
    setup.model.fno = {.grid = 8, .modes = 2, .width = 300, .layers = 1, .projection = 400};
  }
  setup.training.learning_rate = 1e-4;
  setup.training.num_epochs = 2;
  setup.training.batch_size = name == "fno" ? 4 : name == "pinn" ? 64 : 32;
  setup.data.samples = 3 * setup.training.batch_size;
  return setup;
}

thread_local bool computes = false;
std::atomic<int> on_computing_threads, on_other_threads;

void count(int) { ++(computes ? on_computing_threads : on_other_threads); }

/// Calls f(i) once on every thread of the host space.
template <class F>
void on_every_thread(const F& f) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  Kokkos::parallel_for("every thread", Kokkos::RangePolicy<Host>(0, Host().concurrency()), f);
}

/// Sends a signal to this process 5,000 times a second as long as it lives. The calling thread and
/// those of the host space count as computing.
class SignalStorm {
 public:
  explicit SignalStorm(int signal)
      : sender_([signal](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            kill(getpid(), signal);
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          }
        }) {
    on_every_thread([](int) { computes = true; });
    on_computing_threads = on_other_threads = 0;
  }

 private:
  std::jthread sender_;
};

std::vector<double> losses_of(const Experiment& setup) {
  return trainer_of<float>(setup).fit(setup.data).epoch_losses;
}

class Signals : public testing::TestWithParam<const char*> {};

TEST_P(Signals, ToStopInterruptNoComputation) {
  const Experiment setup = wide(GetParam());
  const std::vector<double> undisturbed = losses_of(setup);
  const StopSignals signals(count);
  const SignalStorm storm(SIGUSR1);
  EXPECT_EQ(losses_of(setup), undisturbed);
  EXPECT_TRUE(signals.arrived());
  EXPECT_EQ(on_computing_threads, 0);
}

INSTANTIATE_TEST_SUITE_P(OfWide, Signals,
                         testing::Values("mlp", "residual_mlp", "transformer", "experts", "vae",
                                         "pinn", "fno"),
                         [](const auto& test) { return std::string(test.param); });

/// Returns for every thread of the host space whether it blocks the signal.
std::vector<int> blocked_on_every_thread(int signal) {
  std::vector<int> blocked(Kokkos::DefaultHostExecutionSpace().concurrency());
  on_every_thread([&](int i) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked[i] = sigismember(&mask, signal);
  });
  return blocked;
}

void own_handler(int) {}

TEST(StopSignals, RestoreHandlersAndMasks) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    // Shells let their background jobs ignore SIGINT, and what is ignored stays so.
    const auto original = std::signal(signal, own_handler);
    const std::vector<int> before = blocked_on_every_thread(signal);
    {
      const StopSignals signals(count);
      EXPECT_EQ(blocked_on_every_thread(signal), std::vector<int>(before.size(), 1));
      kill(getpid(), signal);
    }
    EXPECT_EQ(blocked_on_every_thread(signal), before);
    EXPECT_EQ(std::signal(signal, original), own_handler);
  }
}

/// Handles SIGPROF, as profilers do, as long as it lives.
class ProfilerHandler {
 public:
  explicit ProfilerHandler(int flags) {
    struct sigaction action {};
    action.sa_handler = count;
    action.sa_flags = SA_RESTART | flags;
    sigaction(SIGPROF, &action, &before_);
  }
  ~ProfilerHandler() { sigaction(SIGPROF, &before_, nullptr); }
  ProfilerHandler(const ProfilerHandler&) = delete;
  ProfilerHandler& operator=(const ProfilerHandler&) = delete;

 private:
  struct sigaction before_ {};
};

void expect_profiler_leaves_alone(const std::string& model) {
  const Experiment setup = wide(model);
  const std::vector<double> undisturbed = losses_of(setup);
  const SignalStorm storm(SIGPROF);
  EXPECT_EQ(losses_of(setup), undisturbed);
  EXPECT_GT(on_computing_threads, 0);
}

/// Has a name, which stack_t has not: nvcc does not compile vectors of it.
struct Stack {
  stack_t of{};
};

TEST(SignalsOfProfilers, RunOnAlternativeStacks) {
  std::vector<std::vector<char>> stacks(Kokkos::DefaultHostExecutionSpace().concurrency());
  std::vector<Stack> before(stacks.size());
  on_every_thread([&](int i) {
    stacks[i].resize(1 << 16);
    stack_t stack{};
    stack.ss_sp = stacks[i].data();
    stack.ss_size = stacks[i].size();
    sigaltstack(&stack, &before[i].of);
  });
  {
    const ProfilerHandler handler(SA_ONSTACK);
    for (const char* model : {"mlp", "transformer"}) expect_profiler_leaves_alone(model);
  }
  on_every_thread([&](int i) { sigaltstack(&before[i].of, nullptr); });
}

TEST(SignalsOfProfilers, RunOnAnyStackWithoutOneDnn) {
  const char* const isa = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (isa == nullptr || std::string(isa) != "SSE41")
    GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA=SSE41 leaves its products out";
  const ProfilerHandler handler(0);
  for (const char* model : {"mlp", "transformer"}) expect_profiler_leaves_alone(model);
}

}  // namespace
}  // namespace tessera
