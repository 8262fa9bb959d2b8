// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {

const DataRow& row_of(DataKind kind) {
  // In the order of the enumerators.
  static constexpr std::array<const DataRow*, names_of<DataKind>.size()> rows{
      &sum_of_squares_data, &random_data, &copy_task_data, &bytes_data, &blobs_data, &idx_data,
      &poisson_points_data, &darcy_data,  &npy_data,       &hdf5_data};
  return *rows[static_cast<std::size_t>(kind)];
}

void reject_data_kind(const DataConfig& data, const std::string& needed) {
  throw ConfigError("data.kind", fmt::format("\"{}\"", name_of(data.kind)), "needs " + needed);
}

Size side_of_square(Size cells) { return std::lround(std::sqrt(static_cast<double>(cells))); }

bool predicts_its_input(const ModelSpec& model) {
  return model.targets == Targets::values && model.classes == 0 && model.input_positions == 1 &&
         model.output_positions() == 1 && model.output_width() == model.input_width;
}

}  // namespace tessera
