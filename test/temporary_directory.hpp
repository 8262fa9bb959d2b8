// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tessera::test {

/// A directory of its own, gone when the object ends. A test may have several.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    static int made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("tessera-" + std::string(info->name()) + "-" + std::to_string(getpid()) + "-" +
             std::to_string(made++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera::test
