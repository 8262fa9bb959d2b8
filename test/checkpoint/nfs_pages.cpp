// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD. Unfinished checkpoints behave as on NFS if each process were a host of
// its own: a write changes a page that the process has read before, and fsync() writes back whole
// pages, with old bytes of neighbours.
#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
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

bool is_checkpoint(int file) {
  std::string path(4096, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return length > 0 && path.find("/step_") != std::string::npos;
}

/// Reads what the file has of a page, also through a descriptor for writing only.
bool read_page(int file, off_t at, char* bytes) {
  const int same = open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC);
  if (same < 0) return false;
  const bool is_read = pread(same, bytes, page, at) >= 0;
  close(same);
  return is_read;
}

}  // namespace

extern "C" {

ssize_t pwrite(int file, const void* data, size_t count, off_t begin) {
  if (!is_checkpoint(file)) return real(&pwrite, "pwrite")(file, data, count, begin);
  const std::lock_guard lock(mutex);
  const off_t end = begin + static_cast<off_t>(count);
  for (off_t at = begin / page * page; at < end; at += page) {
    auto [entry, is_new] = pages_of[file].try_emplace(at, page);
    if (is_new && !read_page(file, at, entry->second.data())) return -1;
    const off_t from = std::max(at, begin), to = std::min(at + page, end);
    std::memcpy(entry->second.data() + (from - at), static_cast<const char*>(data) + (from - begin),
                static_cast<size_t>(to - from));
  }
  return static_cast<ssize_t>(count);
}

ssize_t pwrite64(int file, const void* data, size_t count, off64_t begin) {
  return pwrite(file, data, count, begin);
}

int fsync(int file) {
  if (is_checkpoint(file)) {
    const std::lock_guard lock(mutex);
    usleep(before_writing_back);
    struct stat facts {};
    if (fstat(file, &facts) != 0) return -1;
    for (const auto& [at, bytes] : pages_of[file]) {
      const off_t count = std::min(page, facts.st_size - at);
      if (real(&pwrite, "pwrite")(file, bytes.data(), static_cast<size_t>(count), at) != count)
        return -1;
    }
    pages_of.erase(file);
  }
  return real(&fsync, "fsync")(file);
}

}  // extern "C"
