// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/placement.hpp>

namespace tessera::test {

/// Writes an HDF5 file, as other programs do.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Hdf5Writer() { close(); }
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  hid_t file() const { return file_; }
  void close() {
    if (file_ >= 0) H5Fclose(file_);
    file_ = H5I_INVALID_HID;
  }
  /// Adds an array and its groups. Null `values` leave the elements as they are.
  void add(const char* name, const Shape& shape, hid_t in_file, hid_t in_memory, const void* values,
           hid_t creation = H5P_DEFAULT) const {
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const std::vector<hsize_t> extents(shape.begin(), shape.end());
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t array = H5Dcreate2(file_, name, in_file, space, links, creation, H5P_DEFAULT);
    ASSERT_GE(array, 0);
    if (values != nullptr) {
      ASSERT_GE(H5Dwrite(array, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    }
    H5Dclose(array);
    H5Sclose(space);
    H5Pclose(links);
  }

 private:
  hid_t file_;
};

}  // namespace tessera::test
