// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::Made;
using data_test::make;

const DataConfig blobs_config{.kind = DataKind::blobs, .samples = 50, .seed = 3};

ModelSpec model_of_images(Size pixels) {
  return vae({.input_width = pixels, .hidden = {4}, .latent = 2});
}

TEST(Blobs, PixelsAreFromZeroToOneAndAreTheTargets) {
  const Made made = make(blobs_config, model_of_images(784), {0, 50});
  EXPECT_EQ(made.x, made.y);
  const auto [least, most] = std::minmax_element(made.x.begin(), made.x.end());
  EXPECT_GE(*least, 0);
  EXPECT_LT(*least, 0.01);
  EXPECT_EQ(*most, 1);  // where bumps add up to more
}

/// A picture is neither empty nor full, and differs from the next one.
TEST(Blobs, ImagesDiffer) {
  const Made made = make(blobs_config, model_of_images(784), {0, 50});
  std::set<double> sums;
  for (Size s = 0; s < 50; ++s) {
    double sum = 0;
    for (Size i = 0; i < 784; ++i) sum += made.x[s * 784 + i];
    EXPECT_GT(sum, 0.01 * 784) << s;
    EXPECT_LT(sum, 0.6 * 784) << s;
    sums.insert(sum);
  }
  EXPECT_EQ(sums.size(), 50);
}

/// Noise would have steps of any size; the narrowest bump rises by exp(-1/2) / 0.06 over the image.
TEST(Blobs, ImagesAreSmooth) {
  const Size side = 64;
  const Made made = make(blobs_config, model_of_images(side * side), {0, 50});
  double steepest = 0;
  for (Size row = 0; row < 50 * side; ++row)
    for (Size j = 1; j < side; ++j) {
      const double step = made.x[row * side + j] - made.x[row * side + j - 1];
      steepest = std::max(steepest, std::abs(step));
    }
  EXPECT_LT(steepest, 3 * std::exp(-0.5) / 0.06 / side);
  EXPECT_GT(steepest, 0.01);
}

/// A finer image shows the same bumps.
TEST(Blobs, DoNotDependOnTheSizeOfTheImage) {
  const Made coarse = make(blobs_config, model_of_images(9), {0, 50});
  const Made fine = make(blobs_config, model_of_images(81), {0, 50});
  for (Size s = 0; s < 50; ++s)
    for (Size i = 0; i < 9; ++i)  // the middle of a coarse pixel is that of a fine one
      EXPECT_NEAR(coarse.x[s * 9 + i], fine.x[s * 81 + (3 * (i / 3) + 1) * 9 + 3 * (i % 3) + 1],
                  1e-12);
}

}  // namespace
}  // namespace tessera
