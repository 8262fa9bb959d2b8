// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <filesystem>
#include <numeric>

#include <tessera/io/durable_file.hpp>
#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"
#include "hdf5_writer.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using data_test::expect_reproducible;
using data_test::Made;
using data_test::make;
using data_test::rejection_of;
using test::TemporaryDirectory;

const ModelSpec three_to_one = mlp({.widths = {3, 4, 1}});

/// train/x (5, 3) of float64 and y (5) of int64 count from 0; "note" is a text.
class Hdf5Data : public testing::Test {
 protected:
  Hdf5Data() {
    data_.file = (directory_.path() / "a.h5").string();
    const test::Hdf5Writer file(data_.file);
    std::vector<double> x(15);
    std::vector<std::int64_t> y(5);
    std::iota(x.begin(), x.end(), 0);
    std::iota(y.begin(), y.end(), 0);
    file.add("train/x", {5, 3}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, x.data());
    file.add("y", {5}, H5T_STD_I64LE, H5T_NATIVE_INT64, y.data());
    const hid_t text = H5Tcopy(H5T_C_S1);
    file.add("note", {1}, text, text, "n");
    H5Tclose(text);
  }

  TemporaryDirectory directory_;
  DataConfig data_{.kind = DataKind::hdf5, .samples = 5, .x = "train/x", .y = "/y"};
};

TEST_F(Hdf5Data, SamplesAreRowsOfAnyType) {
  data_test::check(data_, three_to_one);
  EXPECT_EQ(make<float>(data_, three_to_one, {1, 2}), (Made{{3, 4, 5, 6, 7, 8}, {1, 2}}));
  expect_reproducible(data_, three_to_one, false);
}

// A reader changes nothing, and not every file system has locks.
TEST_F(Hdf5Data, AreReadWithoutALock) {
  const OpenFile other(data_.file, O_RDWR);
  ASSERT_TRUE(other.lock());
  EXPECT_EQ(make<float>(data_, three_to_one, {1, 1}), (Made{{3, 4, 5}, {1}}));
}

TEST_F(Hdf5Data, RejectsUnreadableFilesAndArrays) {
  EXPECT_EQ(rejection_of(data_, mlp({.widths = {4, 1}})),
            "data.x = train/x: has shape (5, 3) in " + data_.file +
                ", but the model needs (samples, 4) or another shape with 4 numbers per sample");
  data_.validation_samples = 1;
  EXPECT_EQ(rejection_of(data_, three_to_one),
            "data.x = train/x: has shape (5, 3) in " + data_.file +
                ", but 6 samples are needed (data.samples = 5, data.validation_samples = 1); "
                "data.samples = \"all\" takes what there is");
  data_.validation_samples = 0;
  data_.y = "train/y";
  EXPECT_EQ(rejection_of(data_, three_to_one), "train/y: object 'y' doesn't exist");
  data_.y = "train";
  EXPECT_TRUE(rejection_of(data_, three_to_one).starts_with("train: ")) << "a group";
  data_.y = "note";
  EXPECT_EQ(rejection_of(data_, three_to_one),
            "note: must have elements that are integers, real numbers or booleans");
  std::filesystem::resize_file(data_.file, 1000);
  EXPECT_TRUE(
      rejection_of(data_, three_to_one).starts_with("is not a complete HDF5 file: truncated file"));
  data_.file = directory_.write("text", "x");
  EXPECT_TRUE(rejection_of(data_, three_to_one).starts_with("is not a complete HDF5 file: "));
  data_.file = "/nowhere/file";
  EXPECT_EQ(rejection_of(data_, three_to_one), "cannot be read: No such file or directory");
}

}  // namespace
}  // namespace tessera
