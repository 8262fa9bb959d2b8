// SPDX-License-Identifier: Apache-2.0
// Samples from two arrays of an HDF5 file. The HDF5 library converts their elements.
#include <tessera/base/error.hpp>
#include <tessera/data/stored_samples.hpp>
#include <tessera/io/hdf5_file.hpp>

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

class Hdf5Array {
 public:
  Hdf5Array(const DataConfig& data, const StoredPart& part)
      : file_(with_file_key([&] { return Hdf5File::open(data.file); })),
        place_(" in " + data.file),
        name_(part.name),
        shape_(with_file_key([&] { return file_.shape_of_numbers(name_); })) {}

  const Shape& shape() const { return shape_; }
  const std::string& place() const { return place_; }
  /// Does nothing: HDF5 does not open a truncated file.
  void check_size() const {}

  template <class T>
  void read(Range samples, T* values) const {
    Hyperslab slab{Shape(shape_.size(), 0), shape_};
    slab.first[0] = samples.begin;
    slab.count[0] = samples.count;
    with_file_key([&] { file_.read(name_, dtype_of<T>(), {slab}, values); });
  }

 private:
  Hdf5File file_;
  std::string place_, name_;
  Shape shape_;
};

void check_hdf5(const DataConfig& data, const ModelSpec& model) {
  check_learns_from_examples(data, model);
  if (!has_hdf5())
    reject_data_kind(data, "a program that was built with parallel HDF5 (TESSERA_ENABLE_HDF5)");
}

}  // namespace

const DataRow hdf5_data = stored_samples<Hdf5Array>(check_hdf5, true);

}  // namespace tessera
