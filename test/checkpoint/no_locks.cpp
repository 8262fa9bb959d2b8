// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD. flock() fails with the error number NO_LOCKS, as on a file system
// without locks.
#include <cerrno>
#include <cstdlib>
#include <sys/file.h>

extern "C" int flock(int, int) noexcept {
  errno = std::atoi(std::getenv("NO_LOCKS"));
  return -1;
}
