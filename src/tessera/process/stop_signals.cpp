// SPDX-License-Identifier: Apache-2.0
#include <tessera/process/stop_signals.hpp>

namespace tessera {
namespace {

volatile std::sig_atomic_t stop_signal_arrived = 0;

void remember(int) { stop_signal_arrived = 1; }

}  // namespace

StopSignals::StopSignals() {
  stop_signal_arrived = 0;
  Action action{};
  action.sa_handler = remember;
  // Interrupted system calls in libraries are restarted.
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &term_);
  sigaction(SIGUSR1, &action, &usr1_);
}

StopSignals::~StopSignals() {
  sigaction(SIGTERM, &term_, nullptr);
  sigaction(SIGUSR1, &usr1_, nullptr);
}

bool StopSignals::arrived() const { return stop_signal_arrived != 0; }

}  // namespace tessera
