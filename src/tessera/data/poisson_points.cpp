// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {
namespace {

constexpr Size plane = 2;
static_assert(plane == jet_dimensions);

void check_poisson_points(const DataConfig& data, const ModelSpec& model) {
  if (model.targets != Targets::residuals || model.input_width != plane ||
      model.input_positions != jet_rows || model.output_positions() != jet_rows ||
      model.output_width() != 1)
    reject_data_kind(data, "model.kind = \"pinn\"");
}

/// Returns a number in the open interval (0, 1) with 23 bits, plus one half of the last: the same
/// in float and in double.
KOKKOS_INLINE_FUNCTION double inner_number(std::uint32_t bits) {
  return (static_cast<double>(bits >> 9) + 0.5) * 0x1p-23;
}

/// Fills x with a point of the unit square and a point of its boundary, and y with the right-hand
/// side of -laplacian(u) = f, the solution inside, which no loss reads, and the value on the
/// boundary.
template <class T>
void fill_poisson_points(const DataConfig& data, const ModelSpec&, const DataBlock<T>& block) {
  const Key drawn = key(data.seed);
  const Size begin = block.samples.begin;
  T *const x = block.x.data(), *const y = block.y.data();
  for_each(
      "tessera::poisson_points", block.samples.count, KOKKOS_LAMBDA(Size i) {
        T* const point = x + i * jet_rows * plane;
        T* const target = y + i * jet_rows;
        const auto index = static_cast<std::uint64_t>(3 * (begin + i));
        for (Size e = 0; e < jet_rows * plane; ++e) point[e] = 0;
        for (Size row = 0; row < jet_rows; ++row) target[row] = 0;
        double solution = 1;
        for (Size d = 0; d < plane; ++d) {
          const double at = inner_number(random_bits(drawn, index + static_cast<std::uint64_t>(d)));
          point[d] = static_cast<T>(at);
          point[(1 + d) * plane + d] = 1;
          solution *= Kokkos::sin(Kokkos::numbers::pi * at);
        }
        target[0] = static_cast<T>(2 * Kokkos::numbers::pi * Kokkos::numbers::pi * solution);
        target[1] = static_cast<T>(solution);
        // The low bits choose one of four sides, the other bits the point on it.
        const std::uint32_t bits = random_bits(drawn, index + 2);
        T* const boundary = point + (jet_rows - 1) * plane;
        const Size across = bits & 1;
        boundary[across] = static_cast<T>((bits >> 1) & 1);
        boundary[1 - across] = static_cast<T>(inner_number(bits));
      });
}

}  // namespace

const DataRow poisson_points_data{.check = check_poisson_points, .fill = [](const auto&... block) {
                                    fill_poisson_points(block...);
                                  }};

}  // namespace tessera
