// SPDX-License-Identifier: Apache-2.0
// The only file that includes <zlib.h>.
#include <algorithm>
#include <zlib.h>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/data/unpacked_file.hpp>

namespace tessera {
namespace {

constexpr Size inflate_piece = 1 << 16;

}  // namespace

/// Unpacks a file from its beginning to its end. gzip may have appended one file to another.
class UnpackedFile::Inflater {
 public:
  Inflater() {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, gzip_only + MAX_WBITS) != Z_OK)
      throw Error(ExitCode::out_of_memory, "zlib cannot be started");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  Size unpacked() const { return unpacked_; }

  /// The next `count` bytes of what `file` holds, or as many as there are.
  Size read(DataFile& file, Size count, unsigned char* to) {
    Size got = 0;
    while (got < count) {
      stream_.next_out = to + got;
      stream_.avail_out = static_cast<uInt>(std::min(count - got, inflate_piece));
      const uInt wanted = stream_.avail_out;
      if (!inflate_some(file)) break;
      got += wanted - stream_.avail_out;
    }
    unpacked_ += got;
    return got;
  }

  void restart() {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    packed_ = unpacked_ = 0;
    is_between_ = true;
  }

 private:
  /// False at the end.
  bool inflate_some(DataFile& file) {
    if (stream_.avail_in == 0 && !refill(file)) {
      if (is_between_) return false;
      file.reject(
          fmt::format("is cut short: its gzip data do not end within its {} bytes", packed_));
    }
    if (is_between_) inflateReset(&stream_);
    is_between_ = false;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      is_between_ = true;
    else if (status != Z_OK && status != Z_BUF_ERROR)
      file.reject(fmt::format("has damaged gzip data: {}",
                              stream_.msg != nullptr ? stream_.msg : zError(status)));
    return true;
  }

  bool refill(DataFile& file) {
    const Size count = std::min<Size>(file.bytes() - packed_, inflate_piece);
    if (count == 0) return false;
    buffer_ = file.read(packed_, count);
    packed_ += count;
    stream_.next_in = buffer_.data();
    stream_.avail_in = static_cast<uInt>(count);
    return true;
  }

  z_stream stream_{};
  std::vector<unsigned char> buffer_;
  Size packed_ = 0, unpacked_ = 0;  ///< bytes so far
  bool is_between_ = true;          ///< one appended file is complete, another may follow
};

UnpackedFile::UnpackedFile(const std::string& key, const std::string& path) : file_(key, path) {
  const std::vector<unsigned char> magic{0x1f, 0x8b};
  if (file_.bytes() >= std::ssize(magic) && file_.read(0, std::ssize(magic)) == magic)
    packed_ = std::make_unique<Inflater>();
}

UnpackedFile::UnpackedFile(UnpackedFile&&) noexcept = default;
UnpackedFile::~UnpackedFile() = default;

Size UnpackedFile::bytes() {
  if (!packed_) return file_.bytes();
  std::vector<unsigned char> unused(inflate_piece);
  while (packed_->read(file_, inflate_piece, unused.data()) > 0) {
  }
  return packed_->unpacked();
}

std::vector<unsigned char> UnpackedFile::read(Size begin, Size count) {
  if (!packed_) return file_.read(begin, count);
  if (begin < packed_->unpacked()) packed_->restart();
  std::vector<unsigned char> bytes(static_cast<std::size_t>(inflate_piece));
  while (packed_->unpacked() < begin) {
    const Size left = begin - packed_->unpacked();
    if (packed_->read(file_, std::min(left, inflate_piece), bytes.data()) == 0) break;
  }
  bytes.resize(static_cast<std::size_t>(count));
  if (packed_->unpacked() < begin || packed_->read(file_, count, bytes.data()) < count)
    reject(fmt::format("has fewer than {} bytes", begin + count));
  return bytes;
}

}  // namespace tessera
