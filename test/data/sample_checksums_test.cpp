// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/data/sample_checksums.hpp>
#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::TemporaryFile;

/// Returns the checksums of sequences of five bytes. `change` is added to the byte at `at`.
nlohmann::json checksums_of(Size samples, Size further = 0, Size at = 0, int change = 0) {
  std::vector<unsigned char> bytes(5 * samples + 1 + further);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(7 * i % 251);
  bytes[at] = static_cast<unsigned char>(bytes[at] + change);
  const TemporaryFile file("tessera_checksums", bytes);
  return nlohmann::json::parse(
      sample_checksums({.kind = DataKind::bytes, .samples = samples, .file = file.path()},
                       transformer({.vocabulary = 256, .context = 5})));
}

TEST(SampleChecksums, DependOnTheValuesOfTheSamplesOnly) {
  constexpr Size samples = 40;  // 16 runs of 2 or 3
  const nlohmann::json expected = checksums_of(samples);
  ASSERT_EQ(expected.size(), 16U);
  EXPECT_EQ(checksums_of(samples, 9), expected) << "of a longer file";
  for (const Size sample : {0, 7, 23, 39}) {
    const nlohmann::json changed = checksums_of(samples, 0, 5 * sample + 2, 1);
    Size different = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(changed[i][0] == expected[i][0], changed[i][1] == expected[i][1]);
      different += changed[i] != expected[i] ? 1 : 0;
    }
    EXPECT_EQ(different, 1) << sample;
  }
}

TEST(SampleChecksums, ReadAFewSamplesOfMany) {
  constexpr Size samples = 1000000;
  const nlohmann::json expected = checksums_of(samples);
  EXPECT_NE(checksums_of(samples, 0, 5 * (65536 / 5) - 1, 1), expected) << "in the first run";
  EXPECT_EQ(checksums_of(samples, 0, 5 * (65536 / 5) + 1, 1), expected) << "between two runs";
}

TEST(SampleChecksums, AreEmptyForGeneratedSamples) {
  EXPECT_EQ(sample_checksums({}, mlp({.widths = {4, 8, 1}})), "[]");
}

}  // namespace
}  // namespace tessera
