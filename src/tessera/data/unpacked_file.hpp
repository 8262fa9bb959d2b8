// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/base/types.hpp>

struct gzFile_s;

namespace tessera {

/// A file that gzip may have packed (RFC 1952), named by a key of the configuration. Errors are
/// ConfigErrors for that key. Reading backwards in a packed file unpacks it again from its start.
class UnpackedFile {
 public:
  UnpackedFile(std::string key, std::string path);

  /// Returns the number of unpacked bytes. Unpacks the whole file, which finds damage.
  Size bytes();
  /// Returns `count` bytes from byte `begin` on, which must exist.
  std::vector<unsigned char> read(Size begin, Size count);
  [[noreturn]] void reject(const std::string& reason) const;

 private:
  Size read_some(unsigned char* to, Size count);
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  std::string key_, path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace tessera
