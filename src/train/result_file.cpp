// SPDX-License-Identifier: Apache-2.0
#include <tessera/train/result_file.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <unistd.h>

#include <tessera/base/error.hpp>

namespace tessera {

namespace fs = std::filesystem;

void check_writable(const std::string& key, const fs::path& path) {
  std::error_code unused;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(path, unused))
    throw ConfigError(key, path.string(), "must be a file, not a directory");
  if (!fs::is_directory(parent, unused))
    throw ConfigError(key, path.string(), "must lie in an existing directory");
  if (access(parent.c_str(), W_OK | X_OK) != 0 ||
      (fs::exists(path, unused) && access(path.c_str(), W_OK) != 0))
    throw ConfigError(key, path.string(), "must be writable");
}

void write_json(const fs::path& path, const nlohmann::json& document) {
  const fs::path temporary = path.string() + ".partial-" + std::to_string(getpid());
  errno = 0;
  std::ofstream file(temporary);
  file << document.dump(2) << '\n';
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string reason = errno != 0 ? std::strerror(errno) : "not everything was written";
  std::error_code unused;
  fs::remove(temporary, unused);
  throw Error(ExitCode::usage, "cannot write " + path.string() + ": " + reason);
}

}  // namespace tessera
