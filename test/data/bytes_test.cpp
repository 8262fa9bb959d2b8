// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::error_of;
using data_test::expect_reproducible;
using data_test::Made;
using data_test::make;
using data_test::rejection_of;
using data_test::TemporaryFile;

const ModelSpec model_of_bytes = transformer({.vocabulary = 256, .context = 5});

/// Bytes whose values are 100, 101, ...
std::vector<unsigned char> counted_bytes(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(100));
  return bytes;
}

DataConfig bytes_config(const std::string& file, Size samples) {
  return {.kind = DataKind::bytes, .samples = samples, .file = file};
}

TEST(Bytes, SamplesFollowOneAnotherInTheFile) {
  const TemporaryFile file("tessera_bytes", counted_bytes(21));
  const DataConfig data = bytes_config(file.path(), 4);
  EXPECT_EQ(
      rejection_of({.kind = DataKind::bytes, .samples = 5, .file = file.path()}, model_of_bytes),
      "has 21 bytes, which are 4 samples of 5 and a next byte, but 5 samples are needed; "
      "data.samples = \"all\" takes what there is");
  EXPECT_EQ(samples_in_files(data, model_of_bytes), 4);
  data_test::check(data, model_of_bytes);
  EXPECT_EQ(make(data, model_of_bytes, {2, 2}),
            (Made{{110, 111, 112, 113, 114, 115, 116, 117, 118, 119},
                  {111, 112, 113, 114, 115, 116, 117, 118, 119, 120}}));
  expect_reproducible(data, model_of_bytes, false);
}

TEST(Bytes, AreReadWithoutASign) {
  const TemporaryFile file("tessera_bytes", {0, 127, 128, 255, 1, 2});
  EXPECT_EQ(make(bytes_config(file.path(), 1), model_of_bytes, {0, 1}),
            (Made{{0, 127, 128, 255, 1}, {127, 128, 255, 1, 2}}));
}

TEST(Bytes, RejectFilesThatHaveBecomeShorter) {
  const TemporaryFile file("tessera_bytes", counted_bytes(21));
  EXPECT_EQ(error_of([&] {
              make(bytes_config(file.path(), 5), model_of_bytes, {4, 1});
            }),
            "data.file = " + file.path() + ": has fewer than 26 bytes");
}

}  // namespace
}  // namespace tessera
