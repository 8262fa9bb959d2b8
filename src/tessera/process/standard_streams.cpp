// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera {

void print_output(std::string_view text) {
  bool written = false;
  above_progress([&] {
    errno = 0;
    written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    written = std::fflush(stdout) == 0 && written;
  });
  if (written) return;
  const std::string reason = errno != 0 ? std::strerror(errno) : "incomplete write";
  throw Error(ExitCode::usage, "cannot write to standard output: " + reason);
}

}  // namespace tessera
