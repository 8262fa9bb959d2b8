// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera {

/// A file named by a key of the configuration, open for reading. Errors are ConfigErrors for that
/// key.
class DataFile {
 public:
  DataFile(std::string key, std::string path);

  Size bytes() const { return bytes_; }
  /// Reads `count` bytes from byte `begin` on, which must exist.
  std::vector<unsigned char> read(Size begin, Size count);
  [[noreturn]] void reject(const std::string& reason) const;

 private:
  std::string key_, path_;
  std::ifstream file_;
  Size bytes_ = 0;
};

}  // namespace tessera
