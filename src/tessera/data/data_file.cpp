// SPDX-License-Identifier: Apache-2.0
// The only file that includes <zlib.h>. zlib reads a file without a gzip header as it is.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/data/data_file.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {

void DataFile::Close::operator()(gzFile_s* file) const { gzclose(file); }

DataFile::DataFile(std::string key, std::string path)
    : key_(std::move(key)), path_(std::move(path)) {
  if (const std::string problem = why_unreadable(path_); !problem.empty()) reject(problem);
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (!file_) reject(fmt::format("cannot be opened: {}", std::strerror(errno)));
  gzdirect(file_.get());  // detects gzip now, so that reading a plain file seeks from the start
}

/// Reads at most `count` bytes; fewer at the end of the file.
Size DataFile::read_some(unsigned char* to, Size count) const {
  constexpr Size most = 1 << 30;  // zlib counts the bytes of a call as int
  Size got = 0;
  int read = 1, status = Z_OK;
  while (got < count && read > 0) {
    read = gzread(file_.get(), to + got, static_cast<unsigned>(std::min(count - got, most)));
    const char* const message = gzerror(file_.get(), &status);
    if (read < 0) reject(fmt::format("has damaged gzip data: {}", message));
    if (status == Z_BUF_ERROR) reject("is cut short: its gzip data do not end");
    got += read;
  }
  return got;
}

Size DataFile::bytes() const {
  if (gzdirect(file_.get()) != 0) return static_cast<Size>(std::filesystem::file_size(path_));
  std::vector<unsigned char> piece(1 << 20);
  while (read_some(piece.data(), std::ssize(piece)) > 0) {
  }
  return gztell(file_.get());
}

std::vector<unsigned char> DataFile::read(Size begin, Size count) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
  if (gzseek(file_.get(), begin, SEEK_SET) < 0 || read_some(bytes.data(), count) < count)
    reject(fmt::format("has fewer than {} bytes", begin + count));
  return bytes;
}

void DataFile::reject(const std::string& reason) const { throw ConfigError(key_, path_, reason); }

}  // namespace tessera
