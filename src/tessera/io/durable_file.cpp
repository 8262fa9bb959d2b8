// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/io/durable_file.hpp>

namespace tessera {
namespace {

[[noreturn]] void fail_with(const std::filesystem::path& path, const char* what, int error) {
  throw Error(ExitCode::usage,
              fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : id_(::open(path.c_str(), flags)) {
    if (id_ < 0) fail_with(path, "cannot be opened", errno);
  }
  ~Descriptor() { ::close(id_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return id_; }

 private:
  int id_;
};

}  // namespace

void reserve_space(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDWR);
  struct stat facts {};
  if (fstat(file, &facts) != 0) fail_with(path, "cannot be read", errno);
  if (facts.st_size > 0 && fallocate(file, 0, 0, facts.st_size) != 0 && errno != EOPNOTSUPP)
    fail_with(path, "cannot be written", errno);
}

void sync_to_disk(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (fsync(file) != 0) fail_with(path, "cannot be written", errno);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_with(to, "cannot be written", errno);
  sync_to_disk(to.has_parent_path() ? to.parent_path() : ".");
}

void write_durably(const std::filesystem::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) fail_with(path, "cannot be written", errno != 0 ? errno : EIO);
  sync_to_disk(path);
}

}  // namespace tessera
