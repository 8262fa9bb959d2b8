// SPDX-License-Identifier: Apache-2.0
// Images in the IDX format of the MNIST data set (LeCun, Cortes and Burges 1998): magic number,
// number of images, rows and columns as big-endian integers, then one byte per pixel.
#include <fmt/format.h>

#include <tessera/data/data_file.hpp>
#include <tessera/data/data_row.hpp>

namespace tessera {
namespace {

constexpr Size idx_header_bytes = 16;
constexpr std::uint32_t idx_magic = 0x00000803;  // unsigned bytes in three dimensions

std::uint32_t big_endian(const std::vector<unsigned char>& bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) number = number << 8 | bytes[i];
  return number;
}

void check_idx(const DataConfig& data, const ModelSpec& model) {
  if (!predicts_its_input(model))
    reject_data_kind(data, "a model that predicts its input, such as model.kind = \"vae\"");
}

std::vector<SamplesOfFile> count_images(const DataConfig& data, const ModelSpec& model) {
  DataFile file("data.file", data.file);
  const std::vector<unsigned char> header = file.read(0, idx_header_bytes);
  if (const std::uint32_t magic = big_endian(header, 0); magic != idx_magic)
    file.reject(
        fmt::format("must be a file of images in IDX format, which begins with 0x{:08x}, not "
                    "0x{:08x}",
                    idx_magic, magic));
  const std::uint64_t images = big_endian(header, 4), rows = big_endian(header, 8),
                      columns = big_endian(header, 12);
  if (rows * columns != static_cast<std::uint64_t>(model.input_width))
    file.reject(fmt::format("has images of {} x {} pixels, but the model reads {}", rows, columns,
                            model.input_width));
  // A quotient, because the product may overflow.
  if (const Size whole = (file.bytes() - idx_header_bytes) / model.input_width;
      whole < Size(images))
    file.reject(fmt::format("is truncated after {} of its {} images", whole, images));
  return {{"data.file", data.file, fmt::format("has {} images", images), Size(images)}};
}

template <class T>
void fill_idx(DataFile& file, Size pixels, const DataBlock<T>& block) {
  const Size n = block.samples.count * pixels;
  const std::vector<unsigned char> bytes =
      file.read(idx_header_bytes + block.samples.begin * pixels, n);
  const auto x = Kokkos::create_mirror_view(Kokkos::WithoutInitializing, block.x);
  for (Size i = 0; i < n; ++i) x.data()[i] = static_cast<T>(bytes[i]) / T(255);
  Kokkos::deep_copy(block.x, x);
  Kokkos::deep_copy(block.y, x);
}

}  // namespace

const DataRow idx_data{
    .check = check_idx,
    .reads_file = true,
    .count_samples = count_images,
    .fill = [](const DataConfig& data, const ModelSpec& model) {
      return [&, file = DataFile("data.file", data.file)](const auto& block) mutable {
        fill_idx(file, model.input_width, block);
      };
    }};

}  // namespace tessera
