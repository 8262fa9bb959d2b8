// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/data/data_file.hpp>

namespace tessera {

/// The bytes of a DataFile, or those that gzip (RFC 1952) has packed in it. To go back in a packed
/// file is to unpack it again from its beginning.
class UnpackedFile {
 public:
  UnpackedFile(const std::string& key, const std::string& path);
  UnpackedFile(UnpackedFile&&) noexcept;
  ~UnpackedFile();

  /// How many there are. A packed file is unpacked to its end, which shows whether it is damaged.
  Size bytes();
  /// `count` bytes from byte `begin` on, which must be there.
  std::vector<unsigned char> read(Size begin, Size count);
  [[noreturn]] void reject(const std::string& reason) const { file_.reject(reason); }

 private:
  class Inflater;
  DataFile file_;
  std::unique_ptr<Inflater> packed_;  ///< null: nothing is packed
};

}  // namespace tessera
