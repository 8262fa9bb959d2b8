// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/data/data_file.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {

DataFile::DataFile(std::string key, std::string path)
    : key_(std::move(key)), path_(std::move(path)) {
  if (const std::string problem = why_unreadable(path_); !problem.empty()) reject(problem);
  file_.open(path_, std::ios::binary);
  file_.seekg(0, std::ios::end);
  bytes_ = std::max<Size>(file_.tellg(), 0);
}

std::vector<unsigned char> DataFile::read(Size begin, Size count) {
  std::vector<unsigned char> bytes(count);
  file_.clear();
  file_.seekg(begin);
  file_.read(reinterpret_cast<char*>(bytes.data()), count);
  if (file_.gcount() != count) reject(fmt::format("has fewer than {} bytes", begin + count));
  return bytes;
}

void DataFile::reject(const std::string& reason) const { throw ConfigError(key_, path_, reason); }

}  // namespace tessera
