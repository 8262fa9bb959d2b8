// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/data/data_file.hpp>

namespace tessera {

DataFile::DataFile(std::string key, std::string path)
    : key_(std::move(key)), path_(std::move(path)) {
  std::error_code unused;
  if (std::filesystem::is_directory(path_, unused)) reject("must be a file, not a directory");
  errno = 0;
  file_.open(path_, std::ios::binary);
  if (!file_) reject(fmt::format("cannot be read: {}", std::strerror(errno)));
  file_.seekg(0, std::ios::end);
  const auto end = file_.tellg();
  if (end < 0) reject("must be a regular file");
  bytes_ = static_cast<Size>(end);
}

void DataFile::read(Size begin, Size count, void* to) {
  file_.clear();
  file_.seekg(begin);
  file_.read(static_cast<char*>(to), count);
  if (file_.gcount() != count) reject(fmt::format("has fewer than {} bytes", begin + count));
}

std::vector<unsigned char> DataFile::read(Size begin, Size count) {
  std::vector<unsigned char> bytes(count);
  read(begin, count, bytes.data());
  return bytes;
}

void DataFile::reject(const std::string& reason) const { throw ConfigError(key_, path_, reason); }

}  // namespace tessera
