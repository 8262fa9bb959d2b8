// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <vector>

#include <tessera/data/sample_checksums.hpp>
#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::TemporaryFile;

std::vector<unsigned char> mixed_bytes(Size count) {
  std::vector<unsigned char> bytes(count);
  for (Size i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(7 * i % 251);
  return bytes;
}

/// Checksums of sequences of five bytes.
std::vector<SampleChecksum> checksums_of(const std::vector<unsigned char>& bytes, Size samples) {
  const TemporaryFile file("tessera_checksums", bytes);
  return sample_checksums({.kind = DataKind::bytes, .samples = samples, .file = file.path()},
                          transformer({.vocabulary = 256, .context = 5}));
}

TEST(SampleChecksums, AreTheSameForTheSameValuesOnly) {
  constexpr Size samples = 40;
  const std::vector<unsigned char> bytes = mixed_bytes(5 * samples + 1);
  const std::vector<SampleChecksum> expected = checksums_of(bytes, samples);
  ASSERT_EQ(expected.size(), 16U);
  Size next = 0;
  for (const SampleChecksum& one : expected) {
    EXPECT_EQ(one.samples.begin, next);  // all of a set that is as small
    next = one.samples.end();
  }
  EXPECT_EQ(next, samples);
  // Longer files have the same samples.
  for (const Size further : {0, 9}) {
    const auto same = checksums_of(mixed_bytes(5 * samples + 1 + further), samples);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(same[i].x, expected[i].x);
      EXPECT_EQ(same[i].y, expected[i].y);
    }
  }
  std::vector<unsigned char> changed = bytes;
  ++changed[5 * expected[3].samples.begin + 2];
  const auto other = checksums_of(changed, samples);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(other[i].x == expected[i].x, i != 3) << i;
    EXPECT_EQ(other[i].y == expected[i].y, i != 3) << i;
  }
}

TEST(SampleChecksums, ReadAFewSamplesOfMany) {
  constexpr Size samples = 1000000;
  Size read = 0;
  for (const SampleChecksum& one : checksums_of(mixed_bytes(5 * samples + 1), samples))
    read += one.samples.count;
  EXPECT_EQ(read, 16 * (65536 / 5));
}

TEST(SampleChecksums, OfComputedSamplesAreNone) {
  EXPECT_TRUE(sample_checksums({}, mlp({.widths = {4, 8, 1}})).empty());
}

}  // namespace
}  // namespace tessera
