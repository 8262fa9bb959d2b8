// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that gives files the faults of other file systems, by the environment:
// - NO_LOCKS=ERRNO: flock() fails with this error number, as where there are no locks.
// - NO_SPACE_BEYOND=BYTES: unfinished checkpoints cannot be longer, as on a full disk.
// - NFS_PAGES=1: unfinished checkpoints behave as on NFS if each process were a host of its own. A
//   write changes a page that the process has read before, and fsync() writes back whole pages,
//   with old bytes of neighbours.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr off_t page = 4096;
constexpr useconds_t before_writing_back = 300'000;  ///< others have read their pages by then
using Pages = std::map<off_t, std::vector<char>>;    ///< by their first byte

std::mutex mutex;
std::map<int, Pages> pages_of;  ///< by file descriptor

template <class F>
F real(F, const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

std::string link_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

/// Returns the variable for an unfinished checkpoint, null for other files.
const char* fault_of(const char* variable, int file) {
  const char* const value = std::getenv(variable);
  std::string path(4096, '\0');
  const bool is_checkpoint = value != nullptr &&
                             readlink(link_of(file).c_str(), path.data(), path.size()) > 0 &&
                             path.find("/step_") != std::string::npos;
  return is_checkpoint ? value : nullptr;
}

bool has_space(int file, off_t end) {
  const char* const limit = fault_of("NO_SPACE_BEYOND", file);
  return limit == nullptr || end <= std::atol(limit);
}

/// Reads what the file has of a page, also through a descriptor for writing only.
bool read_page(int file, off_t at, char* bytes) {
  const int same = open(link_of(file).c_str(), O_RDONLY | O_CLOEXEC);
  if (same < 0) return false;
  const bool is_read = pread(same, bytes, page, at) >= 0;
  close(same);
  return is_read;
}

ssize_t change_pages(int file, const char* data, off_t begin, off_t end) {
  const std::lock_guard lock(mutex);
  for (off_t at = begin / page * page; at < end; at += page) {
    auto [entry, is_new] = pages_of[file].try_emplace(at, page);
    if (is_new && !read_page(file, at, entry->second.data())) return -1;
    const off_t from = std::max(at, begin), to = std::min(at + page, end);
    std::memcpy(entry->second.data() + (from - at), data + (from - begin),
                static_cast<size_t>(to - from));
  }
  return end - begin;
}

bool write_pages_back(int file) {
  const std::lock_guard lock(mutex);
  usleep(before_writing_back);
  struct stat facts {};
  if (fstat(file, &facts) != 0) return false;
  for (const auto& [at, bytes] : pages_of[file]) {
    const off_t count = std::min(page, facts.st_size - at);
    if (real(&pwrite, "pwrite")(file, bytes.data(), static_cast<size_t>(count), at) != count)
      return false;
  }
  pages_of.erase(file);
  return true;
}

}  // namespace

extern "C" {

int flock(int file, int operation) noexcept {
  const char* const error = std::getenv("NO_LOCKS");
  if (error == nullptr) return real(&flock, "flock")(file, operation);
  errno = std::atoi(error);
  return -1;
}

int posix_fallocate(int file, off_t begin, off_t count) {
  if (!has_space(file, begin + count)) return ENOSPC;
  return real(&posix_fallocate, "posix_fallocate")(file, begin, count);
}

int posix_fallocate64(int file, off64_t begin, off64_t count) {
  return posix_fallocate(file, begin, count);
}

ssize_t pwrite(int file, const void* data, size_t count, off_t begin) {
  const off_t end = begin + static_cast<off_t>(count);
  if (!has_space(file, end)) {
    errno = ENOSPC;
    return -1;
  }
  if (fault_of("NFS_PAGES", file) != nullptr)
    return change_pages(file, static_cast<const char*>(data), begin, end);
  return real(&pwrite, "pwrite")(file, data, count, begin);
}

ssize_t pwrite64(int file, const void* data, size_t count, off64_t begin) {
  return pwrite(file, data, count, begin);
}

int fsync(int file) {
  if (fault_of("NFS_PAGES", file) != nullptr && !write_pages_back(file)) return -1;
  return real(&fsync, "fsync")(file);
}

}  // extern "C"
