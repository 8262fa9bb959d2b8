// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tessera/io/disk_space.hpp>

namespace tessera {

std::string reserve_space([[maybe_unused]] int file, [[maybe_unused]] Size bytes) {
#ifdef __linux__
  // posix_fallocate() would write to each block where the file system cannot reserve space.
  if (bytes > 0 && fallocate(file, 0, 0, bytes) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
    return std::strerror(errno);
#endif
  return {};
}

void discard_writes([[maybe_unused]] int file) {
#ifdef __linux__
  const int memory = memfd_create("tessera-discarded", MFD_CLOEXEC);
  if (memory < 0) return;
  dup2(memory, file);
  close(memory);
#endif
}

}  // namespace tessera
