// SPDX-License-Identifier: Apache-2.0
// Arrays as other programs write them, h5py above all.
#include <cmath>
#include <cstdint>
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

const ModelSpec three_to_one = mlp({.widths = {3, 4, 1}}), one_to_one = mlp({.widths = {1, 1}});

/// Takes bytes as they are; HDF5 knows it only as long as it is registered.
std::size_t pass_on(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                    void**) {
  return bytes;
}

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

  /// Makes data.x an array (5) in a file of its own, data.y likewise.
  void write_x(hid_t in_file, hid_t in_memory, const void* values, hid_t creation = H5P_DEFAULT) {
    data_.file = (directory_.path() / "x.h5").string();
    data_.x = data_.y = "x";
    test::Hdf5Writer(data_.file).add("x", {5}, in_file, in_memory, values, creation);
  }

  TemporaryDirectory directory_;
  DataConfig data_{.kind = DataKind::hdf5, .samples = 5, .x = "train/x", .y = "/y"};
};

TEST_F(Hdf5Data, SamplesAreRowsOfAnyType) {
  data_test::check(data_, three_to_one);
  EXPECT_EQ(make<float>(data_, three_to_one, {1, 2}), (Made{{3, 4, 5, 6, 7, 8}, {1, 2}}));
  expect_reproducible(data_, three_to_one, false);
}

TEST_F(Hdf5Data, BooleansAreZeroAndOne) {
  const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(boolean, "FALSE", &no);
  H5Tenum_insert(boolean, "TRUE", &yes);
  const std::vector<std::int8_t> values{1, 0, 0, 1, 0};
  write_x(boolean, boolean, values.data());
  H5Tclose(boolean);
  data_test::check(data_, one_to_one);
  EXPECT_EQ(make<float>(data_, one_to_one, {2, 2}).x, (std::vector<double>{0, 1}));
}

TEST_F(Hdf5Data, BytesMayHaveEitherOrder) {
  const std::vector<double> values{1, -2, 3e10, 0.5, 0};
  write_x(H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, values.data());
  data_test::check(data_, one_to_one);
  EXPECT_EQ(make(data_, one_to_one, {0, 5}).x, values);
}

TEST_F(Hdf5Data, AMissingFilterIsNamed) {
  constexpr H5Z_filter_t lzf = 32000;  // the number that h5py has for it
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, lzf, 1, 1, "lzf", nullptr, nullptr, pass_on};
  ASSERT_GE(H5Zregister(&filter), 0);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t samples = 5;
  H5Pset_chunk(creation, 1, &samples);
  H5Pset_filter(creation, lzf, H5Z_FLAG_OPTIONAL, 0, nullptr);
  const std::vector<double> values(samples, 1);
  write_x(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data(), creation);
  H5Pclose(creation);
  data_test::check(data_, one_to_one);
  H5Zunregister(lzf);
  EXPECT_EQ(rejection_of(data_, one_to_one),
            "x: is packed with the HDF5 filter 32000 \"lzf\", which is not installed: name its "
            "directory in HDF5_PLUGIN_PATH, or pack with gzip instead");
}

TEST_F(Hdf5Data, NanIsRejectedWithFileArrayAndPlace) {
  const std::vector<double> values{1, 2, NAN, 3, 4};
  write_x(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data());
  EXPECT_EQ(data_test::error_of([&] {
              make(data_, one_to_one, {2, 2});
            }),
            "data.x = x: has nan in row 2, column 0 in " + data_.file +
                ", counted from 0, which is not finite in float64; data.allow_nonfinite = true "
                "trains on it");
}

// A reader changes nothing, and not every file system has locks.
TEST_F(Hdf5Data, AreReadWithoutALock) {
  const OpenFile other(data_.file, O_RDWR);
  ASSERT_EQ(other.lock(), Lock::taken);
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
