// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/io/append_file.hpp>

namespace tessera {

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code unknown;
  if (std::filesystem::exists(path_, unknown) && !std::filesystem::is_regular_file(path_, unknown))
    throw Error(ExitCode::usage, "{}: is not a regular file", path_.string());
  id_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (id_ < 0) fail("open");
  // File systems without locks are let pass.
  if (flock(id_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(id_);
  throw Error(ExitCode::usage, "{}: another run writes to it", path_.string());
}

AppendFile::~AppendFile() { close(id_); }

void AppendFile::keep_lines(const std::function<bool(const std::string& line)>& keep) const {
  std::ifstream file(path_, std::ios::binary);
  std::uintmax_t kept = 0;
  for (std::string line; std::getline(file, line) && !file.eof() && keep(line);)
    kept += line.size() + 1;
  if (ftruncate(id_, static_cast<off_t>(kept)) != 0) fail("shorten");
}

void AppendFile::append(std::string_view record) const {
  while (!record.empty()) {  // after a short write, the next one tells the reason
    const ssize_t written = ::write(id_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write to");
    record.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendFile::fail(std::string_view what) const {
  throw Error(ExitCode::usage, "{}: cannot {} it: {}", path_.string(), what, std::strerror(errno));
}

}  // namespace tessera
