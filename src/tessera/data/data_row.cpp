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

void check_files(const DataConfig& data, const ModelSpec& model) {
  const Size needed = data.samples + data.validation_samples;
  for (const SamplesOfFile& file : row_of(data.kind).count_samples(data, model)) {
    if (file.samples >= needed) continue;
    const std::string sum = data.validation_samples == 0
                                ? ""
                                : fmt::format(" (data.samples = {}, data.validation_samples = {})",
                                              data.samples, data.validation_samples);
    throw ConfigError(file.key, file.name,
                      "{}, but {} samples are needed{}; data.samples = \"all\" takes what there is",
                      file.what, needed, sum);
  }
}

Size samples_in_files(const DataConfig& data, const ModelSpec& model) {
  const std::vector<SamplesOfFile> files = row_of(data.kind).count_samples(data, model);
  if (files.empty())
    throw ConfigError("data.samples", "\"all\"",
                      "needs samples in files; data.kind = \"{}\" makes them", name_of(data.kind));
  const Size samples = files.front().samples;
  for (const SamplesOfFile& file : files)
    if (file.samples != samples)
      throw ConfigError(file.key, file.name, "{}, but {} {}", file.what, files.front().key,
                        files.front().what);
  if (data.validation_samples >= samples)
    throw ConfigError("data.validation_samples", std::to_string(data.validation_samples),
                      "must be less than the {} samples of {}", samples, files.front().key);
  return samples - data.validation_samples;
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
