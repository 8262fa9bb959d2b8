// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, limits its unfinished checkpoints to NO_SPACE_BEYOND bytes, as a full
// disk would.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

bool has_space(int file, off_t end) {
  char link[64], path[4096] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const char* const limit = std::getenv("NO_SPACE_BEYOND");
  const bool is_limited = limit != nullptr && readlink(link, path, sizeof path - 1) > 0 &&
                          std::strstr(path, "/step_") != nullptr;
  if (!is_limited || end <= std::atol(limit)) return true;
  errno = ENOSPC;
  return false;
}

}  // namespace

extern "C" {

int posix_fallocate(int file, off_t begin, off_t count) {
  using F = int (*)(int, off_t, off_t);
  static const auto real = reinterpret_cast<F>(dlsym(RTLD_NEXT, "posix_fallocate"));
  return has_space(file, begin + count) ? real(file, begin, count) : ENOSPC;
}

int posix_fallocate64(int file, off64_t begin, off64_t count) {
  return posix_fallocate(file, begin, count);
}

ssize_t pwrite(int file, const void* data, size_t count, off_t begin) {
  using F = ssize_t (*)(int, const void*, size_t, off_t);
  static const auto real = reinterpret_cast<F>(dlsym(RTLD_NEXT, "pwrite"));
  return has_space(file, begin + static_cast<off_t>(count)) ? real(file, data, count, begin) : -1;
}

ssize_t pwrite64(int file, const void* data, size_t count, off64_t begin) {
  return pwrite(file, data, count, begin);
}

}  // extern "C"
