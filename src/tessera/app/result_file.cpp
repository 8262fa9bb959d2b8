// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/app/result_file.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/host_info.hpp>

namespace tessera {

namespace fs = std::filesystem;

void check_writable(const std::string& key, const fs::path& path) {
  std::error_code unused;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(path, unused))
    throw ConfigError(key, path.string(), "must be a file, not a directory");
  if (!fs::is_directory(parent, unused))
    throw ConfigError(key, path.string(), "must be in an existing directory");
  if (access(parent.c_str(), W_OK | X_OK) != 0 ||
      (fs::exists(path, unused) && access(path.c_str(), W_OK) != 0))
    throw ConfigError(key, path.string(), "must be writable");
  // A name that is too long, a link to itself. No file yet is what is usual.
  if (access(path.c_str(), F_OK) != 0 && errno != ENOENT)
    throw ConfigError(key, path.string(),
                      std::string("cannot be written: ") + std::strerror(errno));
}

namespace {

/// Errors and a short disk show at the latest when the file is closed. Returns the reason, or "".
std::string write_bytes(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return "";
  return errno != 0 ? std::strerror(errno) : "incomplete write";
}

/// A pipe, a device or a link must be written to; a rename would put a file in its place.
bool is_replaceable(const fs::path& path) {
  std::error_code unused;
  const fs::file_status status = fs::symlink_status(path, unused);
  return !fs::exists(status) || fs::is_regular_file(status);
}

/// Of a name that is as long as names may be, the end gives way.
fs::path temporary_beside(const fs::path& path) {
  const std::string suffix = fmt::format(".partial-{}-{}", host_name(), getpid());
  const std::string name = path.filename().string().substr(0, NAME_MAX - suffix.size());
  return path.parent_path() / (name + suffix);
}

}  // namespace

void write_text(const fs::path& path, const std::string& text) {
  std::string reason;
  if (!is_replaceable(path)) {
    reason = write_bytes(path, text);
  } else {
    const fs::path temporary = temporary_beside(path);
    reason = write_bytes(temporary, text);
    if (reason.empty() && std::rename(temporary.c_str(), path.c_str()) != 0)
      reason = std::strerror(errno);
    std::error_code unused;
    if (!reason.empty()) fs::remove(temporary, unused);
  }
  if (!reason.empty())
    throw Error(ExitCode::usage, "cannot write " + path.string() + ": " + reason);
}

void write_json(const fs::path& path, const nlohmann::json& document) {
  write_text(path, document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace tessera
