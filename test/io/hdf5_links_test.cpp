// SPDX-License-Identifier: Apache-2.0
// Files of other programs whose arrays are in other files, which are never opened.
#include <string>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <tessera/io/hdf5_array.hpp>

#include "expect_error.hpp"
#include "hdf5_writer.hpp"
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
    test::Hdf5Writer(path("a.h5")).add("here", {2}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, nullptr);
    mkfifo(path("fifo").c_str(), 0600);
  }

  std::string path(const char* name) const { return (directory_.path() / name).string(); }
  /// Adds an array "y" with these properties.
  void add_array(hid_t properties) const {
    made_.add("y", {2}, H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, nullptr, properties);
    H5Pclose(properties);
  }
  Hdf5Array opened(const std::string& name) {
    made_.close();
    return {path("b.h5"), name};
  }
  /// Returns the error of opening an array, without the name of the file.
  std::string error_of_opening(const std::string& name) {
    return error_of([&] { opened(name); }).substr(path("b.h5").size());
  }

  TemporaryDirectory directory_;
  test::Hdf5Writer made_{path("b.h5")};
};

TEST_F(Hdf5Links, AreNotFollowedToOtherFiles) {
  H5Lcreate_external(path("a.h5").c_str(), "here", made_.file(), "y", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("fifo", "y", made_.file(), "z", H5P_DEFAULT, H5P_DEFAULT);
  for (const std::string name : {"y", "z"})
    EXPECT_EQ(error_of_opening(name),
              ": " + name + ": must be in this file, not behind a link to another one");
}

TEST_F(Hdf5Links, WithinTheFileAreFollowed) {
  H5Lcreate_soft("x", made_.file(), "y", H5P_DEFAULT, H5P_DEFAULT);
  made_.add("x", {2}, H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, nullptr);
  EXPECT_EQ(opened("y").shape(), (Shape{2}));
}

TEST_F(Hdf5Links, ElementsInAnotherFileAreNotRead) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(properties, path("fifo").c_str(), 0, 2 * sizeof(double));
  add_array(properties);
  EXPECT_EQ(error_of_opening("y"), ": y: must have its elements in this file, not in other ones");
}

TEST_F(Hdf5Links, VirtualArraysAreNotRead) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t extent = 2;
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  H5Pset_virtual(properties, space, path("a.h5").c_str(), "here", space);
  H5Sclose(space);
  add_array(properties);
  EXPECT_EQ(error_of_opening("y"), ": y: must have its elements in this file, not in other ones");
}

}  // namespace
}  // namespace tessera
