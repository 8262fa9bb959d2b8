// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/base/types.hpp>

struct gzFile_s;

namespace tessera {

/// A file named by a key of the configuration, open for reading. It may be packed by gzip (RFC
/// 1952). Errors are ConfigErrors for that key. Reading backwards in a packed file unpacks it again
/// from its start.
class DataFile {
 public:
  DataFile(std::string key, std::string path);

  /// Returns the number of unpacked bytes. Unpacks the whole file, which finds damage.
  Size bytes() const;
  /// Returns `count` bytes from byte `begin` on, which must exist.
  std::vector<unsigned char> read(Size begin, Size count);
  [[noreturn]] void reject(const std::string& reason) const;

 private:
  Size read_some(unsigned char* to, Size count) const;
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  std::string key_, path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace tessera
