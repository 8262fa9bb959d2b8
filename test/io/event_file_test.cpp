// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tessera/io/append_file.hpp>
#include <tessera/io/event_file.hpp>

#include "expect_error.hpp"
#include "file_size_limit.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::TemporaryDirectory;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Written by RecordWriter of the Python package tensorboard 2.20 from the same events.
TEST(EventFile, RecordsAreThoseOfTensorBoard) {
  EXPECT_EQ(hex(event_version(1234.5)),
            "1800000000000000a37f4b220900000000004a93401a0d627261696e2e4576656e743a3265b8d3fb");
  EXPECT_EQ(hex(event_restart(1234.5, 301)),
            "100000000000000095fbfe180900000000004a934010ad023a020801c02893a5");
  const std::vector<NamedNumber> numbers{{"loss", 0.125}, {"rate", 1e-3}};
  EXPECT_EQ(
      hex(event_numbers(1235.5, 302, numbers)),
      "2800000000000000ff70164a0900000000004e934010ae022a1a0a0b0a046c6f7373150000003e0a0b0a047261"
      "7465156f12833aa1e92fba");
}

TEST(EventFile, NewNamesSortAfterOlderOnes) {
  const TemporaryDirectory directory;
  directory.write("notes.txt", "");
  const auto first = new_event_file(directory.path(), 1795635205.9);
  EXPECT_TRUE(first.filename().string().starts_with("events.out.tfevents.1795635205."));
  directory.write(first.filename().string(), "");
  const auto second = new_event_file(directory.path(), 1795635205.9);
  EXPECT_TRUE(second.filename().string().starts_with("events.out.tfevents.1795635206."));
}

TEST(AppendFile, KeepsCompleteLinesUpToTheFirstRejectedOne) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("lines", "a\nb\nc\nb");
  const auto text = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  {
    const AppendFile file(path);
    file.keep_lines([](const std::string&) { return true; });
    EXPECT_EQ(text(), "a\nb\nc\n");
    file.keep_lines([](const std::string& line) { return line != "b"; });
    file.append("d\n");
    EXPECT_EQ(text(), "a\nd\n");
    EXPECT_EQ(error_of([&] { const AppendFile again(path); }), path + ": another run writes to it");
  }
  EXPECT_EQ(error_of([&] { const AppendFile folder(directory.path()); }),
            directory.path().string() + ": is not a regular file");
}

// /dev/full is no regular file, so a full disk is shown by the limit on the size of files.
TEST(AppendFile, ReportsARecordThatDoesNotFit) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("lines", "");
  const AppendFile file(path);
  const test::FileSizeLimit limit(4);
  const std::string partly = error_of([&] { file.append("123456\n"); });
  const std::string nothing = error_of([&] { file.append("123456\n"); });
  EXPECT_EQ(partly, path + ": cannot write to it: File too large");
  EXPECT_EQ(nothing, path + ": cannot write to it: File too large");
}

}  // namespace
}  // namespace tessera
