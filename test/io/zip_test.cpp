// SPDX-License-Identifier: Apache-2.0
// That other programs read these archives is tested with NumPy, in test/app/checkpoint_test.sh.
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <tessera/io/npy_header.hpp>
#include <tessera/io/zip.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

// The check value of CRC-32 in catalogues of such sums.
TEST(Zip, SumsAsTheStandardSays) {
  EXPECT_EQ(crc32("123456789", 9), 0xcbf43926U);
  EXPECT_EQ(crc32("6789", 4, crc32("12345", 5)), 0xcbf43926U);
  EXPECT_EQ(crc32("", 0), 0U);
}

TEST(Zip, StoresMembersAsTheyAre) {
  const test::TemporaryDirectory directory;
  {
    std::ofstream out(directory.path() / "a.zip", std::ios::binary);
    ZipWriter zip(out);
    zip.add("b", "head", "body", 4);
    zip.finish();
  }
  std::ostringstream text;
  text << std::ifstream(directory.path() / "a.zip", std::ios::binary).rdbuf();
  EXPECT_TRUE(text.str().starts_with("PK\x03\x04"));
  EXPECT_NE(text.str().find("bheadbody"), std::string::npos);
}

TEST(Zip, RefusesWhatTheFormatCannotHold) {
  const test::TemporaryDirectory directory;
  std::ofstream out(directory.path() / "a.zip", std::ios::binary);
  ZipWriter zip(out);
  EXPECT_EQ(test::error_of([&] { zip.add("a", "", nullptr, std::size_t{1} << 32); }),
            "a: does not fit: the archive would reach 4 GiB");
}

TEST(Npy, HeaderIsAMultipleOf64Bytes) {
  for (const Shape& shape : {Shape{7}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
    const std::string header = npy_header(DType::float64, shape);
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_NE(header.find("<f8"), std::string::npos);
  }
  EXPECT_NE(npy_header(DType::float32, {7}).find("'shape': (7,)"), std::string::npos);
}

}  // namespace
}  // namespace tessera
