// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <tessera/app/export.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/io/npy_header.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {

namespace fs = std::filesystem;

std::vector<FileUse> exported_files(const fs::path& directory) {
  std::vector<FileUse> files;
  for (const char* name : {"results.json", "x.npy", "y.npy", "prediction.npy", "sample.npy"})
    files.push_back({"--export", directory / name, true});
  return files;
}

void check_export(const fs::path& directory) {
  make_directory("--export", directory);
  for (const FileUse& file : exported_files(directory)) check_writable(file.key, file.path);
}

template <class T>
void export_predictions(const fs::path& directory, Trainer<T>& trainer, const DataConfig& data) {
  using Data = StateOf<T>;
  constexpr Size rows_wanted = 65536;
  const ModelSpec& model = trainer.model();
  const bool unseen = data.validation_samples > 0;
  const Size samples =
      std::clamp<Size>(rows_wanted / std::max(model.input_positions, model.output_positions()), 1,
                       unseen ? data.validation_samples : data.samples);
  const Matrix<Data> x("tessera::export_x", samples * model.input_positions, model.input_width);
  const Matrix<Data> y("tessera::export_y", samples * model.output_positions(),
                       model.target_width());
  const Communicator& world = trainer.mesh().world();
  collectively(world, [&] {
    row_of(data.kind).fill.run(data, model,
                               DataBlock<Data>{{unseen ? data.samples : 0, samples}, x, y});
  });
  const Matrix<Data> prediction = trainer.predict(x);
  std::optional<Matrix<Data>> drawn;
  if (draws(model)) drawn = trainer.sample(samples);
  collectively(world, [&] {
    if (world.rank() != 0) return;
    const auto write = [&](const char* name, const Matrix<Data>& rows, Size positions) {
      write_npy(directory / name, Vector<Data>(rows.data(), rows.span()),
                {samples, positions, static_cast<Size>(rows.extent(1))});
    };
    write("x.npy", x, model.input_positions);
    write("y.npy", y, model.output_positions());
    write("prediction.npy", prediction, model.output_positions());
    if (drawn) write("sample.npy", *drawn, model.output_positions());
  });
}

#define TESSERA_INSTANTIATE(T) \
  template void export_predictions(const fs::path&, Trainer<T>&, const DataConfig&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

template <class T>
void write_npy(const std::filesystem::path& path, const Vector<T>& values, const Shape& shape) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  std::string bytes = npy_header(dtype_of<T>(), shape);
  bytes.append(reinterpret_cast<const char*>(host.data()), host.span() * sizeof(T));
  write_text(path, bytes);
}

template void write_npy(const std::filesystem::path&, const Vector<float>&, const Shape&);
template void write_npy(const std::filesystem::path&, const Vector<double>&, const Shape&);

}  // namespace tessera
