// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <tessera/io/durable_file.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryDirectory;

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(DurableFile, ReservingSpaceLeavesTheContentAlone) {
  const TemporaryDirectory directory;
  const fs::path path = directory.write("file", "text");
  fs::resize_file(path, 1 << 20);
  const OpenFile file(path, O_RDWR);
  file.reserve_space({4096, 8192});
  file.reserve_space({0, 1 << 20});
  file.reserve_space({0, 0});
  EXPECT_EQ(fs::file_size(path), 1U << 20);
  EXPECT_EQ(content_of(path).substr(0, 5), std::string("text\0", 5));
}

TEST(DurableFile, ReplacesBytesInPlace) {
  const TemporaryDirectory directory;
  const fs::path path = directory.write("file", "0123456789");
  const OpenFile file(path, O_WRONLY);
  file.write(3, "abc", 3);
  file.write(9, "xy", 2);
  file.write(0, nullptr, 0);
  file.sync();
  EXPECT_EQ(content_of(path), "012abc678xy");
}

TEST(DurableFile, NamesPathAndReason) {
  const TemporaryDirectory directory;
  const fs::path nothing = directory.path() / "nothing";
  const std::string reason = "No such file or directory";
  EXPECT_EQ(error_of([&] { sync_to_disk(nothing); }),
            nothing.string() + ": cannot be opened: " + reason);
  EXPECT_EQ(error_of([&] { rename_durably(nothing, directory.path() / "to"); }),
            (directory.path() / "to").string() + ": cannot be written: " + reason);
  EXPECT_EQ(error_of([&] { write_durably(nothing / "file", ""); }),
            (nothing / "file").string() + ": cannot be opened: " + reason);
  EXPECT_EQ(error_of([&] { OpenFile(nothing, O_RDWR); }),
            nothing.string() + ": cannot be opened: " + reason);
  EXPECT_EQ(error_of([&] { OpenFile("/dev/full", O_WRONLY).write(0, "a", 1); }),
            "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace tessera
