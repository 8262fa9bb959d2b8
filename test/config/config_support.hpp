// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>

namespace tessera::config_test {

/// A file in the temporary directory with this text, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(testing::TempDir() + "tessera_config_" + std::to_string(count_++) + "_" +
              std::to_string(std::hash<std::string>{}(text)) + ".toml") {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_;
};

inline Config load_text(const std::string& text, ConfigSource source = {}) {
  const TemporaryFile file(text);
  source.file = file.path();
  return load_config(source);
}

/// Expects a usage error of one line that contains each of the parts.
inline void expect_error(const std::function<void()>& f, const std::vector<std::string>& parts) {
  try {
    f();
    ADD_FAILURE() << "no error; expected one with " << testing::PrintToString(parts);
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ExitCode::usage) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks: " << part;
  }
}

/// A valid configuration: that of the tutorial.
inline Config tutorial() {
  Config config;
  config.model.mlp.widths = {4, 64, 1};
  return config;
}

/// Expects that the tutorial with `change` is refused on `ranks` ranks.
inline void refuse(const std::function<void(Config&)>& change,
                   const std::vector<std::string>& parts, Size ranks = 4) {
  Config config = tutorial();
  change(config);
  expect_error([&] { validate(config, ranks); }, parts);
}

}  // namespace tessera::config_test
