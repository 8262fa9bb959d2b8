// SPDX-License-Identifier: Apache-2.0
// Samples from two arrays of an HDF5 file. The HDF5 library converts their elements.
#include <tessera/base/error.hpp>
#include <tessera/data/stored_samples.hpp>
#include <tessera/io/hdf5_array.hpp>

namespace tessera {
namespace {

/// Runs f. Its errors begin with the file name and become errors of the key data.file.
template <class F>
auto with_file_key(const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code(), std::string("data.file = ") + error.what());
  }
}

class Hdf5Samples {
 public:
  Hdf5Samples(const DataConfig& data, const StoredPart& part)
      : array_(with_file_key([&] { return Hdf5Array(data.file, part.name); })),
        place_(" in " + data.file) {}

  const Shape& shape() const { return array_.shape(); }
  const std::string& place() const { return place_; }
  /// Does nothing: HDF5 does not open a truncated file.
  void check_size() const {}

  template <class T>
  void read(Range samples, T* values) const {
    with_file_key([&] { array_.read(samples, dtype_of<T>(), values); });
  }

 private:
  Hdf5Array array_;
  std::string place_;
};

void check_hdf5(const DataConfig& data, const ModelSpec& model) {
  check_learns_from_examples(data, model);
  if (!has_hdf5())
    reject_data_kind(data, "a program that was built with HDF5 (TESSERA_ENABLE_HDF5)");
}

}  // namespace

const DataRow hdf5_data = stored_samples<Hdf5Samples>(check_hdf5, true);

}  // namespace tessera
