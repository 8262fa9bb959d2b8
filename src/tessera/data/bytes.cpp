// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/data/data_file.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {
namespace {

constexpr Size byte_values = 256;

void check_bytes(const DataConfig& data, const ModelSpec& model) {
  if (model.targets != Targets::classes || model.classes != byte_values)
    reject_data_kind(data, "a sequence model with 256 classes");
}

void check_bytes_file(const DataConfig& data, const ModelSpec& model) {
  // The target of the last position is the next byte.
  const Size samples = data.samples + data.validation_samples;
  const Size needed = samples * model.input_positions + 1;
  const DataFile file("data.file", data.file);
  if (file.bytes() < needed)
    file.reject(fmt::format("must have at least {} bytes for {} samples of {}, but has {}", needed,
                            samples, model.input_positions, file.bytes()));
}

/// Sample s begins at byte s * positions.
template <class T>
void fill_bytes(DataFile& file, Size positions, const DataBlock<T>& block) {
  const Size n = block.samples.count * positions;
  const std::vector<unsigned char> bytes = file.read(block.samples.begin * positions, n + 1);
  const auto x = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, block.x);
  const auto y = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, block.y);
  for (Size i = 0; i < n; ++i) {
    x.data()[i] = static_cast<T>(bytes[i]);
    y.data()[i] = static_cast<T>(bytes[static_cast<std::size_t>(i) + 1]);
  }
  Kokkos::deep_copy(block.x, x);
  Kokkos::deep_copy(block.y, y);
}

}  // namespace

const DataRow bytes_data{
    .check = check_bytes,
    .reads_file = true,
    .check_files = check_bytes_file,
    .fill = [](const DataConfig& data, const ModelSpec& model) {
      return [&, file = DataFile("data.file", data.file)](const auto& block) mutable {
        fill_bytes(file, model.input_positions, block);
      };
    }};

}  // namespace tessera
