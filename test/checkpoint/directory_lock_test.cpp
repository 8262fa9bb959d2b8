// SPDX-License-Identifier: Apache-2.0
// Who has a directory of checkpoints, and who no longer has it.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/checkpoint/directory_lock.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryDirectory;

/// The words of a lock of this process: host, process, start.
struct LockText {
  std::string host;
  long process = 0;
  std::string start;

  std::string text() const { return host + " " + std::to_string(process) + " " + start + "\n"; }
};

LockText own_lock(const TemporaryDirectory& directory) {
  const DirectoryLock lock(directory.path());
  LockText words;
  std::ifstream(directory.path() / "lock") >> words.host >> words.process >> words.start;
  return words;
}

TEST(DirectoryLock, IsThereWhileItLives) {
  const TemporaryDirectory directory;
  EXPECT_EQ(own_lock(directory).process, getpid());
  EXPECT_FALSE(fs::exists(directory.path() / "lock"));
  const DirectoryLock lock(directory.path());
  EXPECT_NE(error_of([&] { DirectoryLock other(directory.path()); }).find("which is running"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(directory.path() / "lock"));
}

TEST(DirectoryLock, OfAProcessThatHasEndedIsReplaced) {
  const TemporaryDirectory directory;
  LockText words = own_lock(directory);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  words.process = child;
  // The first time only its exit code is left of it, the second time nothing.
  for (int time = 0; time < 2; ++time) {
    siginfo_t unused{};
    if (time == 0) waitid(P_PID, static_cast<id_t>(child), &unused, WEXITED | WNOWAIT);
    if (time == 1) waitpid(child, nullptr, 0);
    directory.write("lock", words.text());
    EXPECT_EQ(own_lock(directory).process, getpid());
  }
  // Another process has the same number now.
  words = own_lock(directory);
  words.start += "1";
  directory.write("lock", words.text());
  EXPECT_EQ(own_lock(directory).process, getpid());
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

constexpr std::chrono::milliseconds interval(20);

TEST(DirectoryLock, OfAnotherHostIsReplacedIfNobodyCounts) {
  const TemporaryDirectory directory;
  directory.write("lock", "node7/pid:[1] 4711 123 0000000001\n");
  const DirectoryLock lock(directory.path(), interval);
  EXPECT_TRUE(lock.is_held());
  directory.write("lock", "node8/pid:[1] 4711 123 0000000001\n");
  EXPECT_FALSE(lock.is_held());
}

TEST(DirectoryLock, OfAnotherHostIsRespectedWhileSomebodyCounts) {
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  const auto text = [](int count) { return fmt::format("node7/pid:[1] 4711 123 {:010}\n", count); };
  directory.write("lock", text(0));
  std::jthread owner([&](const std::stop_token& stop) {
    for (int count = 1; !stop.stop_requested(); ++count) {
      std::this_thread::sleep_for(interval);
      std::ofstream(directory.path() / "lock", std::ios::in) << text(count);
    }
  });
  EXPECT_EQ(error_of([&] { DirectoryLock lock(path, interval); }),
            "checkpoint.directory = " + path +
                ": is in use by process 4711 on node7, which is running; set another directory");
}

TEST(DirectoryLock, CountsWhileItLives) {
  const TemporaryDirectory directory;
  const DirectoryLock lock(directory.path(), interval);
  const auto count = [&] {
    LockText words;
    long number = -1;
    std::ifstream(directory.path() / "lock") >> words.host >> words.process >> words.start >>
        number;
    return number;
  };
  for (int tries = 0; tries < 500 && count() < 3; ++tries) std::this_thread::sleep_for(interval);
  EXPECT_GE(count(), 3);
  EXPECT_TRUE(lock.is_held());
}

TEST(DirectoryLock, WithoutAProcessSaysHowToRemoveIt) {
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  // Written by a process that is about to name itself.
  directory.write("lock", "");
  EXPECT_EQ(error_of([&] { DirectoryLock lock(path); }),
            "checkpoint.directory = " + path +
                ": is in use by an unknown process; if none uses it, remove " + path + "/lock");
  EXPECT_TRUE(fs::exists(directory.path() / "lock"));
}

}  // namespace
}  // namespace tessera
