// SPDX-License-Identifier: Apache-2.0
// The lock of a directory of checkpoints.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

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

constexpr std::chrono::milliseconds interval(20);
/// Six of these are long enough for a thread that counts, on a busy machine as well.
constexpr std::chrono::milliseconds long_interval(500);

/// Returns the words of the lock file: host, process, number.
std::vector<std::string> words_in(const TemporaryDirectory& directory) {
  std::ifstream file(directory.path() / "lock");
  return {std::istream_iterator<std::string>(file), {}};
}

TEST(DirectoryLock, KeepsOthersOutWhileItLives) {
  const TemporaryDirectory directory;
  {
    const DirectoryLock lock(directory.path(), long_interval);
    EXPECT_EQ(words_in(directory).at(1), std::to_string(getpid()));
    EXPECT_NE(error_of([&] {
                DirectoryLock other(directory.path(), long_interval);
              }).find("which is running"),
              std::string::npos);
    EXPECT_TRUE(lock.is_held());
    EXPECT_GE(std::stol(words_in(directory).at(2)), 1) << "it counts";
  }
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(DirectoryLock, OfAProcessThatHasEndedIsReplacedAtOnce) {
  const TemporaryDirectory directory;
  std::string host;
  {
    const DirectoryLock lock(directory.path());
    host = words_in(directory).at(0);
  }
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  directory.write("lock", fmt::format("{} {} 0000000001\n", host, child));
  EXPECT_TRUE(DirectoryLock(directory.path()).is_held());
  // Another process has this number now, and does not count.
  directory.write("lock", fmt::format("{} {} 0000000001\n", host, getpid()));
  EXPECT_TRUE(DirectoryLock(directory.path(), interval).is_held());
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(DirectoryLock, OfAnotherHostIsReplacedIfNobodyCounts) {
  const TemporaryDirectory directory;
  directory.write("lock", "node7/pid:[1] 4711 0000000001\n");
  const DirectoryLock lock(directory.path(), interval);
  EXPECT_TRUE(lock.is_held());
  directory.write("lock", "node8/pid:[1] 4711 0000000001\n");
  EXPECT_FALSE(lock.is_held());
}

TEST(DirectoryLock, OfAnotherHostIsRespectedWhileSomebodyCounts) {
  const TemporaryDirectory directory;
  const std::string path = directory.path();
  const auto text = [](int count) { return fmt::format("node7/pid:[1] 4711 {:010}\n", count); };
  directory.write("lock", text(0));
  std::jthread owner([&](const std::stop_token& stop) {
    for (int count = 1; !stop.stop_requested(); ++count) {
      std::this_thread::sleep_for(interval);
      std::ofstream(directory.path() / "lock", std::ios::in) << text(count);
    }
  });
  EXPECT_EQ(error_of([&] { DirectoryLock lock(path, long_interval); }),
            "checkpoint.directory = " + path +
                ": is in use by process 4711 on node7, which is running; set another directory");
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
