// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::expect_reproducible;
using data_test::Made;
using data_test::make;
using data_test::packed;
using data_test::rejection_of;
using data_test::TemporaryFile;

const ModelSpec model_of_six_pixels = vae({.input_width = 6, .hidden = {4}, .latent = 2});

struct IdxHeader {
  std::uint32_t magic = 0x00000803, images = 4, rows = 2, columns = 3;
};

/// The header, and pixels whose values are 0, 10, 20, ...
std::vector<unsigned char> idx_bytes(const IdxHeader& header, std::size_t pixels) {
  std::vector<unsigned char> bytes;
  for (const std::uint32_t number : {header.magic, header.images, header.rows, header.columns})
    for (const int shift : {24, 16, 8, 0})
      bytes.push_back(static_cast<unsigned char>(number >> shift));
  for (std::size_t i = 0; i < pixels; ++i) bytes.push_back(static_cast<unsigned char>(10 * i));
  return bytes;
}

DataConfig idx_config(const std::string& file, Size samples) {
  return {.kind = DataKind::idx, .samples = samples, .file = file};
}

/// Returns the rejection of a file with these contents.
std::string rejection_of_idx(const std::vector<unsigned char>& bytes, Size samples) {
  const TemporaryFile file("tessera_idx", bytes);
  return rejection_of(idx_config(file.path(), samples), model_of_six_pixels);
}

TEST(Idx, PixelsAreBytesOver255) {
  const TemporaryFile file("tessera_idx", idx_bytes({}, 24));
  const DataConfig data = idx_config(file.path(), 4);
  data_test::check(data, model_of_six_pixels);
  const Made made = make(data, model_of_six_pixels, {1, 2});
  ASSERT_EQ(made.x.size(), 12);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(made.x[i], 10.0 * (6 + i) / 255) << i;
  EXPECT_EQ(made.x, made.y);
  expect_reproducible(data, model_of_six_pixels, false);
}

TEST(Idx, RejectsOtherFormats) {
  EXPECT_EQ(rejection_of_idx(idx_bytes({.magic = 0x00000801}, 24), 4),
            "must be a file of images in IDX format, which begins with 0x00000803, not 0x00000801");
  EXPECT_EQ(rejection_of_idx(idx_bytes({.rows = 3}, 36), 4),
            "has images of 3 x 3 pixels, but the model reads 6");
  // The product would be 6 in fewer bits.
  EXPECT_EQ(rejection_of_idx(idx_bytes({.rows = 0x80000001, .columns = 6}, 36), 4),
            "has images of 2147483649 x 6 pixels, but the model reads 6");
}

TEST(Idx, RejectsShortFiles) {
  EXPECT_EQ(rejection_of_idx({}, 1), "has fewer than 16 bytes");
  std::vector<unsigned char> header = idx_bytes({}, 0);
  header.pop_back();
  EXPECT_EQ(rejection_of_idx(header, 1), "has fewer than 16 bytes");
  EXPECT_EQ(rejection_of_idx(idx_bytes({}, 24), 5),
            "has 4 images, but 5 samples are needed; data.samples = \"all\" takes what there is");
  EXPECT_EQ(rejection_of_idx(idx_bytes({}, 23), 4), "is truncated after 3 of its 4 images");
  EXPECT_EQ(rejection_of_idx(idx_bytes({.images = 0xffffffff}, 24), 4),
            "is truncated after 4 of its 4294967295 images");
}

// The file is longer than several pieces of unpacking and packs badly; samples are read in any
// order.
TEST(PackedIdx, MayBeLongAndMadeOfSeveralFiles) {
  constexpr std::uint32_t images = 70'000;
  std::mt19937 random(1);
  std::vector<unsigned char> bytes = idx_bytes({.images = images}, 0);
  for (std::uint32_t i = 0; i < 6 * images; ++i)
    bytes.push_back(static_cast<unsigned char>(random()));
  const auto middle = bytes.begin() + 100'001;
  std::vector<unsigned char> parts = packed({bytes.begin(), middle});
  const std::vector<unsigned char> end = packed({middle, bytes.end()});
  parts.insert(parts.end(), end.begin(), end.end());
  ASSERT_GT(parts.size(), 300'000);
  const TemporaryFile plain("tessera_idx", bytes), file("tessera_idx_gz", parts);
  const DataConfig data = idx_config(file.path(), images);
  data_test::check(data, model_of_six_pixels);
  const Made whole = make(idx_config(plain.path(), images), model_of_six_pixels, {0, images});
  EXPECT_EQ(make(data, model_of_six_pixels, {0, images}), whole);
  // One after the other, as batches are read, and back again.
  for (const Range samples : {Range{10, 3}, Range{60'000, 5}, Range{5, 1}}) {
    const std::vector<double> x = make(data, model_of_six_pixels, samples).x;
    EXPECT_TRUE(std::equal(x.begin(), x.end(), whole.x.begin() + 6 * samples.begin));
  }
}

TEST(PackedIdx, RejectsDamage) {
  const std::vector<unsigned char> whole = packed(idx_bytes({}, 24));
  for (std::size_t length = 2; length < whole.size(); ++length)
    EXPECT_EQ(
        rejection_of_idx({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}, 4),
        "is cut short: its gzip data do not end");
  Size damaged = 0;
  for (std::size_t at = 2; at < whole.size(); ++at) {
    if (at >= 4 && at < 10) continue;  // time, flags of the packer and system say nothing
    std::vector<unsigned char> bytes = whole;
    bytes[at] ^= 0x55;
    const std::string message = rejection_of_idx(bytes, 4);
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_FALSE(message.starts_with("unexpected")) << message;
    damaged += message.starts_with("has damaged gzip data: ");
  }
  EXPECT_GT(damaged, 20);
  EXPECT_EQ(rejection_of_idx(packed(idx_bytes({}, 23)), 4), "is truncated after 3 of its 4 images");
  EXPECT_EQ(rejection_of_idx(packed({}), 4), "has fewer than 16 bytes");
  // The labels of MNIST.
  EXPECT_EQ(rejection_of_idx(packed({0, 0, 8, 1, 0, 0, 0, 4, 7, 2, 1, 0, 3, 3, 3, 3}), 4),
            "must be a file of images in IDX format, which begins with 0x00000803, not 0x00000801");
}

}  // namespace
}  // namespace tessera
