// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/random/distributions.hpp>

namespace tessera {
namespace {

constexpr Size bumps = 3;  // per image

void check_blobs(const DataConfig& data, const ModelSpec& model) {
  const Size side = side_of_square(model.input_width);
  if (!predicts_its_input(model) || side * side != model.input_width)
    reject_data_kind(
        data,
        "a model that predicts its input, whose width must be a square number, such as "
        "model.kind = \"vae\"");
}

/// height exp(-|p - center|^2 / (2 width^2)) at points p of the unit square.
struct Bump {
  float x, y, width, height;

  /// Draws bump `b` of a sample. Its center lies inside the image.
  static KOKKOS_INLINE_FUNCTION Bump drawn(Key key, Size sample, Size b) {
    const auto first = static_cast<std::uint64_t>((sample * bumps + b) * 4);
    return {random_uniform(key, first, 0.15f, 0.85f), random_uniform(key, first + 1, 0.15f, 0.85f),
            random_uniform(key, first + 2, 0.06f, 0.18f),
            random_uniform(key, first + 3, 0.4f, 1.0f)};
  }
};

/// Fills one row of an image per index, so that a bump is drawn once per row.
template <class T>
void fill_blobs(const DataConfig& data, const ModelSpec& model, const DataBlock<T>& block) {
  const Key drawn = key(data.seed);
  const Size side = side_of_square(model.input_width), first = block.samples.begin;
  T *const x = block.x.data(), *const y = block.y.data();
  for_each(
      "tessera::blobs", block.samples.count * side,
      KOKKOS_LAMBDA(Size i) {
        using std::exp;
        const Size sample = first + i / side;
        const T row = (T(i % side) + T(0.5)) / T(side);
        Bump all[bumps];
        for (Size b = 0; b < bumps; ++b) all[b] = Bump::drawn(drawn, sample, b);
        for (Size j = 0; j < side; ++j) {
          const T column = (T(j) + T(0.5)) / T(side);
          T sum = 0;
          for (const Bump& bump : all) {
            const T dx = column - T(bump.x), dy = row - T(bump.y), width = bump.width;
            sum += T(bump.height) * exp(-(dx * dx + dy * dy) / (2 * width * width));
          }
          x[i * side + j] = y[i * side + j] = sum < T(1) ? sum : T(1);
        }
      },
      block.samples.count * model.input_width);
}

}  // namespace

const DataRow blobs_data{.check = check_blobs,
                         .fill = [](const auto&... block) { fill_blobs(block...); }};

}  // namespace tessera
