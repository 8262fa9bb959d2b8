// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>

namespace tessera {
namespace {

std::atomic<int> this_rank = 0;

// Writes a line at once, so that lines of several ranks do not mix.
void write_line(std::string_view prefix, std::string_view message) {
  const std::string line = fmt::format("{}{}\n", prefix, one_line(message));
  above_progress([&] {
    std::fflush(stdout);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
  });
}

}  // namespace

void set_log_rank(int rank) { this_rank = rank; }
int log_rank() { return this_rank; }

void log_note(std::string_view message) {
  if (log_rank() == 0) log_from_this_rank(message);
}

void log_warning(std::string_view message) {
  if (log_rank() == 0) write_line("tessera: warning: ", message);
}

void log_from_this_rank(std::string_view message) { write_line("tessera: ", message); }
void log_error(std::string_view message) { write_line("tessera: error: ", message); }

}  // namespace tessera
