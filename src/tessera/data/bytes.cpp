// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/data/data_file.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {
namespace {

constexpr Size byte_values = 256;

void check_bytes(const DataConfig& data, const ModelSpec& model) {
  if (model.targets != Targets::classes || model.classes != byte_values)
    reject_data_kind(data, "model.kind = \"transformer\" with model.transformer.vocabulary = 256");
}

std::vector<SamplesOfFile> count_bytes(const DataConfig& data, const ModelSpec& model) {
  const Size bytes = DataFile("data.file", data.file).bytes();
  // The target of the last position is the next byte.
  const Size samples = std::max<Size>(bytes - 1, 0) / model.input_positions;
  return {{"data.file", data.file,
           fmt::format("has {} bytes, which are {} of {} and a next byte", bytes,
                       counted(samples, "sample"), model.input_positions),
           samples}};
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
    .count_samples = count_bytes,
    .fill = [](const DataConfig& data, const ModelSpec& model) {
      return [&, file = DataFile("data.file", data.file)](const auto& block) mutable {
        fill_bytes(file, model.input_positions, block);
      };
    }};

}  // namespace tessera
