// SPDX-License-Identifier: Apache-2.0
// Files of other programs whose arrays are in other files, which are never opened.
#include <fstream>
#include <hdf5.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <tessera/io/hdf5_file.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::TemporaryDirectory;

/// Makes a.h5 with an array "here" of two elements, a FIFO without a writer, and b.h5, to which
/// tests add links.
class Hdf5Links : public testing::Test {
 protected:
  Hdf5Links() {
    Hdf5File file = Hdf5File::create(path("a.h5"));
    file.add_array({"here", {2}, DType::float64});
    file.set_attribute("here", "name", std::string("a"));
    file.close();
    mkfifo(path("fifo").c_str(), 0600);
    made_ = H5Fcreate(path("b.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  }

  std::string path(const char* name) const { return (directory_.path() / name).string(); }
  /// Adds an array "y" with these properties.
  void add_array(hid_t properties) const {
    const hsize_t extent = 2;
    const hid_t space = H5Screate_simple(1, &extent, nullptr);
    H5Dclose(
        H5Dcreate2(made_, "y", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(properties);
  }
  Hdf5File finished() const {
    H5Fclose(made_);
    return Hdf5File::open(path("b.h5"));
  }
  /// Returns the error of reading "y", without the name of the file.
  std::string error_of_reading(const Hdf5File& file) const {
    double values[2];
    return error_of([&] {
             file.read("y", DType::float64, {{{0}, {2}}}, values);
           })
        .substr(path("b.h5").size());
  }

  TemporaryDirectory directory_;
  hid_t made_;
};

TEST_F(Hdf5Links, AreNotFollowedToOtherFiles) {
  H5Lcreate_external(path("a.h5").c_str(), "here", made_, "y", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("fifo", "y", made_, "z", H5P_DEFAULT, H5P_DEFAULT);
  const Hdf5File file = finished();
  const std::string reason = ": must be in this file, not behind a link to another one";
  EXPECT_EQ(error_of_reading(file), ": y" + reason);
  EXPECT_EQ(error_of([&] { file.shape_of_numbers("z"); }), path("b.h5") + ": z" + reason);
  EXPECT_EQ(error_of([&] { file.attribute("y", "name"); }), path("b.h5") + ": y" + reason);
  EXPECT_EQ(error_of([&] { file.arrays(); }), path("b.h5") + ": y" + reason);
}

TEST_F(Hdf5Links, WithinTheFileAreFollowed) {
  H5Lcreate_soft("x", made_, "y", H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t extent = 2;
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  H5Dclose(H5Dcreate2(made_, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  EXPECT_EQ(finished().shape_of_numbers("y"), (Shape{2}));
}

TEST_F(Hdf5Links, ElementsInAnotherFileAreNotRead) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(properties, path("fifo").c_str(), 0, 2 * sizeof(double));
  add_array(properties);
  EXPECT_EQ(error_of_reading(finished()),
            ": y: must have its elements in this file, not in other ones");
}

TEST_F(Hdf5Links, VirtualArraysAreNotRead) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t extent = 2;
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  H5Pset_virtual(properties, space, path("a.h5").c_str(), "here", space);
  H5Sclose(space);
  add_array(properties);
  EXPECT_EQ(error_of_reading(finished()),
            ": y: must have its elements in this file, not in other ones");
}

}  // namespace
}  // namespace tessera
