// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include <tessera/io/disk_space.hpp>

namespace tessera {

std::string reserve_space(int file, const Range& bytes, bool may_write) {
  if (bytes.count == 0) return {};
  int error = 0;
  do {
    if (may_write) error = posix_fallocate(file, bytes.begin, bytes.count);
#ifdef __linux__
    else
      error = fallocate(file, 0, bytes.begin, bytes.count) == 0 ? 0 : errno;
#endif
  } while (error == EINTR);
  const bool cannot = error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
  return error == 0 || cannot ? "" : std::strerror(error);
}

bool is_on_nfs([[maybe_unused]] const std::filesystem::path& path) {
#ifdef __linux__
  constexpr long nfs = 0x6969;  // NFS_SUPER_MAGIC of <linux/magic.h>
  struct statfs facts {};
  return statfs(path.c_str(), &facts) == 0 && facts.f_type == nfs;
#else
  return false;
#endif
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
