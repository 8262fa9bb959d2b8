// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/io/durable_file.hpp>
#include <tessera/io/whole_file.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryDirectory;

/// One node of each kind that is no regular file. Devices need root; this one reads like /dev/zero
/// and writes like /dev/null.
class WholeFile : public testing::Test {
 protected:
  struct Node {
    std::string path, kind;
    mode_t mode;
  };
  WholeFile() {
    add("FIFO", S_IFIFO);
    add("socket", S_IFSOCK);
    add("device", S_IFCHR, makedev(1, 5));
    fs::create_directory(file("directory"));
    nodes_.push_back({file("directory"), "directory", S_IFDIR});
    for (const Node& node : std::vector(nodes_)) {
      fs::create_symlink(node.path, node.path + "-link");
      nodes_.push_back({node.path + "-link", node.kind, node.mode});
    }
  }

  std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  std::size_t files() const {
    return std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator());
  }
  void expect_nodes() const {
    for (const Node& node : nodes_) {
      struct stat facts {};
      ASSERT_EQ(stat(node.path.c_str(), &facts), 0);
      EXPECT_EQ(facts.st_mode & S_IFMT, node.mode) << node.path;
    }
  }

  TemporaryDirectory directory_;
  std::vector<Node> nodes_;

 private:
  void add(const std::string& kind, mode_t mode, dev_t device = 0) {
    if (mknod(file(kind).c_str(), mode | 0600, device) == 0)
      nodes_.push_back({file(kind), kind, mode});
  }
};

TEST_F(WholeFile, IsReadUpToALimit) {
  const std::string text = directory_.write("text", std::string("a\0\nb", 4));
  EXPECT_EQ(read_text(text), std::string("a\0\nb", 4));
  EXPECT_EQ(read_text(text, 4).size(), 4U);
  EXPECT_EQ(error_of([&] { read_text(text, 3); }), text + ": is larger than 3 B");
  EXPECT_EQ(read_text(directory_.write("long", std::string(200000, 'x'))).size(), 200000U);
  EXPECT_EQ(why_unreadable(text), "");
  EXPECT_EQ(error_of([&] { read_text(file("none")); }),
            file("none") + ": cannot be read: No such file or directory");
}

TEST_F(WholeFile, ReadsRegularFilesOnly) {
  ASSERT_GE(nodes_.size(), 6U);
  for (const Node& node : nodes_)
    EXPECT_EQ(error_of([&] { read_text(node.path); }),
              node.path + ": must be a regular file, not a " + node.kind);
}

TEST_F(WholeFile, ReplacesARegularFileOrNone) {
  const std::size_t before = files();
  check_writable("--json", file("text"));
  EXPECT_EQ(files(), before) << "a check leaves no trace";
  write_text(file("text"), "old");
  write_text(file("text"), "new");
  EXPECT_EQ(read_text(file("text")), "new");
  write_json(file("text"), {{"name", "\xff"}});
  EXPECT_EQ(read_text(file("text")), "{\n  \"name\": \"\ufffd\"\n}\n");
  EXPECT_EQ(files(), before + 1);
}

TEST_F(WholeFile, IsWrittenThroughLinks) {
  fs::create_directory(file("far"));
  fs::create_symlink("far/text", file("relative"));
  fs::create_symlink(file("relative"), file("absolute"));
  check_writable("--json", file("absolute"));
  for (const char* text : {"new", "newer"}) {
    write_text(file("absolute"), text);
    EXPECT_EQ(read_text(file("far/text")), text);
    EXPECT_TRUE(fs::is_symlink(file("absolute")));
    EXPECT_TRUE(fs::is_symlink(file("relative")));
  }
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file("far/text"))));
  fs::create_symlink("loop", file("loop"));
  EXPECT_EQ(
      error_of([&] { write_text(file("loop"), "x"); }),
      "cannot write " + file("loop") + ": cannot be written: Too many levels of symbolic links");
  fs::create_symlink("nowhere/text", file("astray"));
  EXPECT_EQ(error_of([&] { check_writable("--json", file("astray")); }),
            "--json = " + file("astray") + ": must be in an existing directory");
}

TEST_F(WholeFile, ReplacesRegularFilesOnly) {
  for (const Node& node : nodes_) {
    const std::string reason = "must be a regular file, not a " + node.kind;
    EXPECT_EQ(error_of([&] { check_writable("--json", node.path); }),
              "--json = " + node.path + ": " + reason);
    EXPECT_EQ(error_of([&] { write_text(node.path, "x"); }),
              "cannot write " + node.path + ": " + reason);
  }
  expect_nodes();
}

TEST_F(WholeFile, IsNotWrittenInPart) {
  directory_.write("text", "old");
  const std::size_t before = files();
  EXPECT_THROW(write_whole(file("text"),
                           [](std::ostream& out) {
                             out << "half";
                             throw std::runtime_error("no more");
                           }),
               std::runtime_error);
  error_of([&] { write_whole(file("text"), [](auto& out) { out.setstate(std::ios::badbit); }); });
  EXPECT_EQ(read_text(file("text")), "old");
  EXPECT_EQ(files(), before);
}

TEST_F(WholeFile, DurableRenamesReplaceRegularFilesOnly) {
  const std::string text = directory_.write("text", "new");
  fs::create_symlink("old", file("link"));
  directory_.write("old", "old");
  EXPECT_EQ(error_of([&] { rename_durably(text, file("link")); }),
            file("link") + ": must be a regular file, not a symbolic link");
  for (const Node& node : nodes_) error_of([&] { rename_durably(text, node.path); });
  expect_nodes();
  EXPECT_EQ(read_text(text), "new");
  write_durably(text, "newer");
  rename_durably(text, file("old"));
  EXPECT_EQ(read_text(file("old")), "newer");
  EXPECT_FALSE(fs::exists(text));
}

}  // namespace
}  // namespace tessera
