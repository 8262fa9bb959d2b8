// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/durable_file.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/host_info.hpp>

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// Returns "" for a regular file.
std::string what_is_wrong_with(mode_t mode) {
  if (S_ISREG(mode)) return "";
  const char* kind = S_ISDIR(mode)    ? "directory"
                     : S_ISFIFO(mode) ? "FIFO"
                     : S_ISSOCK(mode) ? "socket"
                     : S_ISLNK(mode)  ? "symbolic link"
                                      : "device";
  return fmt::format("must be a regular file, not a {}", kind);
}

/// Returns "; the installation has /usr/share/tessera/inputs/a.toml" for inputs/a.toml, or "" if it
/// does not, such as for a program that is not installed.
std::string installed_place(const fs::path& path) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = program.parent_path().parent_path() / "share/tessera" / path;
  const bool is_there = path.is_relative() && fs::is_regular_file(installed, error);
  return is_there ? "; the installation has " + installed.string() : "";
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Returns a phrase like why_unreadable(), or "".
std::string why_unwritable(const fs::path& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0) {
    if (const std::string problem = what_is_wrong_with(facts.st_mode); !problem.empty())
      return problem;
    if (access(path.c_str(), W_OK) != 0) return "must be writable";
  } else if (errno != ENOENT) {
    return fmt::format("cannot be written: {}", std::strerror(errno));
  }
  const fs::path directory = directory_of(target_of_links(path));
  std::error_code unused;
  if (!fs::is_directory(directory, unused)) return "must be in an existing directory";
  if (access(directory.c_str(), W_OK | X_OK) != 0) return "must be in a writable directory";
  return "";
}

/// Returns a temporary name in the same directory. Shortens a name that would become too long.
fs::path temporary_beside(const fs::path& path) {
  const std::string suffix = fmt::format(".partial-{}-{}", host_name(), getpid());
  const std::string name = path.filename().string().substr(0, NAME_MAX - suffix.size());
  return path.parent_path() / (name + suffix);
}

/// Returns the reason if the file cannot be written completely, else "". A full disk may not show
/// before the file is closed.
std::string fill_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (file) write(file);
  file.close();
  if (file) return "";
  return errno != 0 ? std::strerror(errno) : "incomplete write";
}

}  // namespace

std::string why_unreadable(const fs::path& path) {
  struct stat facts {};
  // To open a device may have side effects.
  const bool exists = stat(path.c_str(), &facts) == 0;
  if (exists && !S_ISREG(facts.st_mode)) return what_is_wrong_with(facts.st_mode);
  if (exists && access(path.c_str(), R_OK) == 0) return "";
  const std::string reason = std::strerror(errno);
  return fmt::format("cannot be read: {}{}", reason, exists ? "" : installed_place(path));
}

std::string read_text(const fs::path& path, Size most_bytes) {
  std::string problem = why_unreadable(path);
  if (problem.empty()) {
    // O_NONBLOCK, because a FIFO may have replaced the file meanwhile.
    const OpenFile file(path, O_RDONLY | O_NONBLOCK);
    const auto bytes = static_cast<Size>(fs::file_size(path));
    std::string text(static_cast<std::size_t>(std::min(bytes, most_bytes)), '\0');
    file.read(0, text.data(), std::ssize(text));
    if (bytes <= most_bytes) return text;
    problem = fmt::format("is larger than {}", human_bytes(most_bytes));
  }
  throw Error(ExitCode::usage, "{}: {}", path.string(), problem);
}

void check_writable(const std::string& key, const fs::path& path) {
  if (const std::string problem = why_unwritable(path); !problem.empty())
    throw ConfigError(key, path.string(), problem);
}

void make_directory(const std::string& key, const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path, error))
    throw ConfigError(key, path.string(), "must be a directory that exists or can be created");
}

void write_whole(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::string problem = why_unwritable(path);
  if (problem.empty()) {
    const fs::path target = target_of_links(path), temporary = temporary_beside(target);
    std::error_code unused;
    try {
      problem = fill_file(temporary, write);
    } catch (...) {
      fs::remove(temporary, unused);
      throw;
    }
    if (problem.empty() && std::rename(temporary.c_str(), target.c_str()) != 0)
      problem = std::strerror(errno);
    if (!problem.empty()) fs::remove(temporary, unused);
  }
  if (!problem.empty()) throw Error(ExitCode::usage, "cannot write {}: {}", path.string(), problem);
}

void write_text(const fs::path& path, const std::string& text) {
  write_whole(path, [&](std::ostream& out) { out << text; });
}

void write_json(const fs::path& path, const nlohmann::json& document) {
  write_text(path, document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void check_replaceable(const fs::path& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return;
  if (const std::string problem = what_is_wrong_with(facts.st_mode); !problem.empty())
    throw Error(ExitCode::usage, "{}: {}", path.string(), problem);
}

fs::path target_of_links(fs::path path) {
  constexpr int most = 40;  // as many as the system follows
  std::error_code unused;
  for (int links = 0; links < most && fs::is_symlink(fs::symlink_status(path, unused)); ++links)
    path = path.parent_path() / fs::read_symlink(path, unused);
  return path;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error)
    throw Error(ExitCode::usage, "{}: the working directory cannot be used: {}", path.string(),
                error.message());
  return whole;
}

}  // namespace tessera
