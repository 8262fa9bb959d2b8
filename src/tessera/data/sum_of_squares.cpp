// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {
namespace {

void check_sum_of_squares(const DataConfig& data, const ModelSpec& model) {
  if (model.targets != Targets::values || model.classes > 0 || model.input_positions != 1 ||
      model.output_positions() != 1 || model.output_width() != 1)
    reject_data_kind(data, "a model with one row per sample and an output width of 1");
}

template <class T>
void fill_sum_of_squares(const DataConfig& data, const ModelSpec&, const DataBlock<T>& block) {
  fill_normal(block.x, key(data.seed), block.samples.begin);
  const Matrix<T> x = block.x, y = block.y;
  const Size columns = static_cast<Size>(x.extent(1));
  for_each(
      "tessera::sum_of_squares_by_row", x.extent(0), KOKKOS_LAMBDA(Size i) {
        T sum = 0;
        for (Size j = 0; j < columns; ++j) sum += x(i, j) * x(i, j);
        y(i, 0) = sum;
      });
}

}  // namespace

const DataRow sum_of_squares_data{.check = check_sum_of_squares, .fill = [](const auto&... block) {
                                    fill_sum_of_squares(block...);
                                  }};

}  // namespace tessera
