// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/sleep.hpp>
#include <tessera/checkpoint/directory_lock.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// The process that holds a lock.
struct ProcessName {
  std::string host;  ///< host name, and the name space of its process numbers
  pid_t number = 0;

  std::string text() const { return fmt::format("{} {} ", host, number); }
  std::string host_only() const { return host.substr(0, host.find('/')); }
};

ProcessName this_process() {
  std::error_code unused;
  const std::string space = fs::read_symlink("/proc/self/ns/pid", unused).string();
  return {host_name() + "/" + space, getpid()};
}

/// Returns true if this host has no such process, or if it is a zombie: some containers never
/// collect exit codes.
bool has_ended(long number) {
  if (::kill(static_cast<pid_t>(number), 0) != 0 && errno == ESRCH) return true;
  std::ifstream file(fmt::format("/proc/{}/stat", number));
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  // The state follows the command in parentheses, which may contain anything.
  const std::size_t command = all.rfind(')');
  return command != std::string::npos && command + 2 < all.size() &&
         (all[command + 2] == 'Z' || all[command + 2] == 'X');
}

std::optional<ProcessName> parse_process(const std::string& text) {
  ProcessName name;
  std::istringstream words(text);
  if (words >> name.host >> name.number) return name;
  return std::nullopt;
}

/// Returns the text of a lock, or "" if it cannot be read.
std::string text_of(const fs::path& path) {
  std::string text;
  outcome_of([&] { text = read_text(path); });
  return text;
}

/// Returns the end of a lock's text, which always has the same length.
std::string counted_text(std::uint32_t count) { return fmt::format("{:010}\n", count); }

/// Removes a lock with this text. A lock that another process has put there meanwhile stays.
void remove_stale(const fs::path& path, const std::string& text) {
  const fs::path aside = fmt::format("{}.{}", path.string(), getpid());
  if (std::rename(path.c_str(), aside.c_str()) != 0) return;
  std::error_code unused;
  if (text_of(aside) != text) fs::create_hard_link(aside, path, unused);
  fs::remove(aside, unused);
}

}  // namespace

DirectoryLock::DirectoryLock(const fs::path& directory, std::chrono::milliseconds interval)
    : file_(directory / "lock"), mine_(this_process().text()) {
  const auto reject = [&](const std::string& reason) {
    throw ConfigError("checkpoint.directory", directory.string(), reason);
  };
  while (!take()) {
    const std::string text = text_of(file_);
    std::error_code unused;
    if (text.empty() && !fs::exists(fs::symlink_status(file_, unused))) continue;
    const std::optional<ProcessName> owner = parse_process(text);
    if (!owner)
      reject(fmt::format("is in use by an unknown process; if none uses it, remove {}",
                         file_.string()));
    if (is_alive(text, interval))
      reject(fmt::format("is in use by process {} on {}, which is running; set another directory",
                         owner->number, owner->host_only()));
    remove_stale(file_, text);
  }
  counter_ =
      std::jthread([this, interval](const std::stop_token& stop) { count_up(stop, interval); });
}

/// Creates the file; returns false if there is one already.
bool DirectoryLock::take() {
  id_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (id_ < 0 && errno == EEXIST) return false;
  const std::string text = mine_ + counted_text(0);
  if (id_ >= 0 && ::write(id_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(id_) == 0)
    return true;
  const int error = errno;
  if (id_ >= 0) ::close(id_), ::unlink(file_.c_str());
  throw Error(ExitCode::usage, "{}: cannot be written: {}", file_.string(), std::strerror(error));
}

/// A process of this host that does not exist, or of which only its exit code is left, has ended.
/// Any other process must count, because its number may belong to another process now.
bool DirectoryLock::is_alive(const std::string& text, std::chrono::milliseconds interval) const {
  const ProcessName owner = *parse_process(text);
  if (owner.host == this_process().host && has_ended(owner.number)) return false;
  constexpr int missed = 6;
  log_note(fmt::format("{}: process {} on {} may use this directory; waiting {:.0f} s for a sign",
                       file_.string(), owner.number, owner.host_only(),
                       std::chrono::duration<double>(missed * interval).count()));
  const auto end = std::chrono::steady_clock::now() + missed * interval;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(interval / 2);
    const std::string now = text_of(file_);
    std::error_code unused;
    if (!fs::exists(fs::symlink_status(file_, unused))) return false;
    if (!now.empty() && now != text) return true;
  }
  return false;
}

void DirectoryLock::count_up(const std::stop_token& stop,
                             std::chrono::milliseconds interval) const {
  for (std::uint32_t count = 1; !sleep_until_stop(stop, interval); ++count) {
    const std::string text = counted_text(count);
    // If this fails, other runs replace the lock, and is_held() returns false.
    [[maybe_unused]] const ssize_t written =
        ::pwrite(id_, text.data(), text.size(), static_cast<off_t>(mine_.size()));
    ::fsync(id_);
  }
}

bool DirectoryLock::is_held() const { return text_of(file_).starts_with(mine_); }

bool DirectoryLock::is_visible(const fs::path& directory, const std::string& owner) {
  using Clock = std::chrono::steady_clock;
  const bool is_here = owner.starts_with(host_name() + "/");
  const Clock::time_point end = Clock::now() + std::chrono::seconds(is_here ? 0 : 30);
  const fs::path file = directory / "lock";
  for (;;) {
    const std::string text = text_of(file);
    std::error_code unused;
    // If the file is there and cannot be read, whatever opens a checkpoint next tells the reason.
    if (text.starts_with(owner) || (text.empty() && fs::exists(file, unused))) return true;
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fs::directory_iterator(directory, unused);  // makes NFS ask for new names
  }
}

DirectoryLock::~DirectoryLock() {
  counter_.request_stop();
  counter_.join();
  if (is_held()) ::unlink(file_.c_str());
  ::close(id_);
}

}  // namespace tessera
