// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/data/data_file.hpp>

namespace tessera {
namespace {

[[noreturn]] void reject_file(const DataConfig& data, const std::string& reason) {
  throw ConfigError("data.file", data.file, reason);
}

std::ifstream opened(const DataConfig& data) {
  std::error_code unused;
  if (std::filesystem::is_directory(data.file, unused))
    reject_file(data, "must be a file, not a directory");
  errno = 0;
  std::ifstream file(data.file, std::ios::binary);
  if (!file) reject_file(data, fmt::format("cannot be read: {}", std::strerror(errno)));
  return file;
}

}  // namespace

Size size_of_data_file(const DataConfig& data) {
  std::ifstream file = opened(data);
  file.seekg(0, std::ios::end);
  const auto end = file.tellg();
  if (end < 0) reject_file(data, "must be a regular file");
  return static_cast<Size>(end);
}

std::vector<unsigned char> read_data_file(const DataConfig& data, Size begin, Size count) {
  std::ifstream file = opened(data);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
  file.seekg(begin);
  file.read(reinterpret_cast<char*>(bytes.data()), count);
  if (file.gcount() != count)
    reject_file(data, fmt::format("has fewer than {} bytes", begin + count));
  return bytes;
}

}  // namespace tessera
