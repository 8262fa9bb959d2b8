// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/file.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include <tessera/base/error.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

[[noreturn]] void fail_with(const std::filesystem::path& path, const char* what, int error) {
  throw Error(ExitCode::usage, "{}: {}: {}", path.string(), what, std::strerror(error));
}

}  // namespace

OpenFile::OpenFile(const std::filesystem::path& path, int flags)
    : path_(path), id_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (id_ < 0) fail("cannot be opened");
}

OpenFile::~OpenFile() { ::close(id_); }

void OpenFile::fail(const char* what) const { fail_with(path_, what, errno); }

void OpenFile::reserve_space(const Range& bytes) const {
  if (bytes.count == 0) return;
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(id_, bytes.begin, bytes.count);
  const bool cannot = error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
  if (error != 0 && !cannot) fail_with(path_, "cannot be written", error);
}

void OpenFile::read(Size place, void* bytes, Size count) const {
  for (char* to = static_cast<char*>(bytes); count > 0;) {
    const ssize_t got = pread(id_, to, static_cast<std::size_t>(count), place);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read");
    if (got == 0) throw Error(ExitCode::usage, "{}: is cut off at byte {}", path_.string(), place);
    to += got;
    place += got;
    count -= got;
  }
}

void OpenFile::write(Size place, const void* bytes, Size count) const {
  for (const char* from = static_cast<const char*>(bytes); count > 0;) {
    const ssize_t written = pwrite(id_, from, static_cast<std::size_t>(count), place);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    from += written;
    place += written;
    count -= written;
  }
}

void OpenFile::sync() const {
  if (fsync(id_) != 0) fail("cannot be written");
}

Lock OpenFile::lock() const {
  if (flock(id_, LOCK_EX | LOCK_NB) == 0) return Lock::taken;
  return errno == EWOULDBLOCK ? Lock::held : Lock::none;
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

void sync_to_disk(const std::filesystem::path& path) { OpenFile(path, O_RDONLY).sync(); }

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  check_replaceable(to);
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_with(to, "cannot be written", errno);
  sync_to_disk(to.has_parent_path() ? to.parent_path() : ".");
}

void write_durably(const std::filesystem::path& path, const std::string& text) {
  const OpenFile file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(0, text.data(), std::ssize(text));
  file.sync();
}

}  // namespace tessera
