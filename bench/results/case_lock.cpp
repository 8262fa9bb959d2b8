// SPDX-License-Identifier: Apache-2.0
#include "results/case_lock.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include <tessera/base/error.hpp>

namespace tessera::bench {
namespace {

LockState try_lock(int file, int kind) {
  if (flock(file, kind | LOCK_NB) == 0) return LockState::free;
  return errno == EWOULDBLOCK ? LockState::held : LockState::unknown;
}

}  // namespace

std::optional<CaseLock> CaseLock::take(const std::filesystem::path& file) {
  const int handle = open(file.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
  if (handle < 0)
    throw Error(ExitCode::usage, "cannot write " + file.string() + ": " + std::strerror(errno));
  CaseLock lock(handle);
  // lock_state() holds a shared lock for a moment.
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (try_lock(handle, LOCK_EX) != LockState::held) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::nullopt;
}

CaseLock::~CaseLock() {
  if (file_ >= 0) close(file_);
}

LockState lock_state(const std::filesystem::path& file) {
  const int handle = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (handle < 0) return LockState::free;
  const LockState state = try_lock(handle, LOCK_SH);
  close(handle);
  return state;
}

}  // namespace tessera::bench
