// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>
#include <zlib.h>

#include <gtest/gtest.h>

#include <tessera/data/data_row.hpp>

#include "device_data.hpp"
#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera::data_test {

using test::error_of;

/// Samples on the host, row by row. Elements that the kind of data does not write are 7.
struct Made {
  std::vector<double> x, y;
  friend bool operator==(const Made&, const Made&) = default;
};

template <class T = double>
Made make(const DataConfig& data, const ModelSpec& model, Range samples) {
  const DataBlock<T> block{
      samples, Matrix<T>("x", samples.count * model.input_positions, model.input_width),
      Matrix<T>("y", samples.count * model.output_positions(), model.target_width())};
  Kokkos::deep_copy(block.x, T(7));
  Kokkos::deep_copy(block.y, T(7));
  row_of(data.kind).fill.run(data, model, block);
  const auto x = test::to_host(block.x), y = test::to_host(block.y);
  return {{x.begin(), x.end()}, {y.begin(), y.end()}};
}

/// Checks that samples do not depend on the blocks in which they are made, but on the seed, if
/// there is one.
inline void expect_reproducible(const DataConfig& data, const ModelSpec& model,
                                bool has_seed = true) {
  const Made whole = make(data, model, {0, data.samples});
  Made joined;
  for (Size begin = 0, count = 1; begin < data.samples; begin += count, ++count) {
    const Made part = make(data, model, {begin, std::min(count, data.samples - begin)});
    joined.x.insert(joined.x.end(), part.x.begin(), part.x.end());
    joined.y.insert(joined.y.end(), part.y.begin(), part.y.end());
  }
  EXPECT_EQ(joined, whole);
  EXPECT_TRUE(make(data, model, {3, 0}).x.empty());
  DataConfig other = data;
  ++other.seed;
  if (has_seed) {
    EXPECT_NE(make(other, model, {0, data.samples}).x, whole.x);
  }
}

/// Packs bytes as gzip does.
inline std::vector<unsigned char> packed(const std::vector<unsigned char>& bytes) {
  z_stream stream{};
  constexpr int gzip_format = 16, default_memory = 8;
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_format + MAX_WBITS, default_memory,
               Z_DEFAULT_STRATEGY);
  std::vector<unsigned char> out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<unsigned char*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A file with these bytes, which the destructor removes.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::vector<unsigned char>& bytes)
      : path_(directory_.write(name, {bytes.begin(), bytes.end()})) {}
  const std::string& path() const { return path_; }

 private:
  test::TemporaryDirectory directory_;
  std::string path_;
};

/// Throws ConfigError unless the model can be trained on these data.
inline void check(const DataConfig& data, const ModelSpec& model) {
  row_of(data.kind).check(data, model);
  check_files(data, model);
}

/// Returns the message of the error that check() throws, without "data.file = <path>: ".
inline std::string rejection_of(const DataConfig& data, const ModelSpec& model) {
  std::string message = error_of([&] { check(data, model); });
  const std::string start = "data.file = " + data.file + ": ";
  return message.starts_with(start) ? message.substr(start.size()) : message;
}

}  // namespace tessera::data_test
