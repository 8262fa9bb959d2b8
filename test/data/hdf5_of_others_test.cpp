// SPDX-License-Identifier: Apache-2.0
// Arrays as other programs write them, h5py above all.
#include <cmath>
#include <cstdint>
#include <hdf5.h>
#include <limits>
#include <optional>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"
#include "hdf5_writer.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using data_test::error_of;
using data_test::make;
using data_test::rejection_of;

const ModelSpec one_to_one = mlp({.widths = {1, 1}});
constexpr hsize_t samples_of_others = 4;

/// Takes bytes as they are; HDF5 knows it only as long as it is registered.
std::size_t pass_on(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                    void**) {
  return bytes;
}

class Hdf5OfOthers : public testing::Test {
 protected:
  Hdf5OfOthers() {
    data_.file = (directory_.path() / "a.h5").string();
    file_.emplace(data_.file);
    const std::vector<double> y(samples_of_others, 0);
    write("y", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, y.data());
  }

  void write(const char* name, hid_t in_file, hid_t in_memory, const void* values,
             hid_t creation = H5P_DEFAULT) {
    file_->add(name, {samples_of_others}, in_file, in_memory, values, creation);
  }

  std::optional<test::Hdf5Writer> file_;
  test::TemporaryDirectory directory_;
  DataConfig data_{.kind = DataKind::hdf5, .samples = samples_of_others, .x = "x", .y = "y"};
};

TEST_F(Hdf5OfOthers, BooleansAreZeroAndOne) {
  const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(boolean, "FALSE", &no);
  H5Tenum_insert(boolean, "TRUE", &yes);
  const std::vector<std::int8_t> values{1, 0, 0, 1};
  write("x", boolean, boolean, values.data());
  H5Tclose(boolean);
  file_->close();
  data_test::check(data_, one_to_one);
  EXPECT_EQ(make(data_, one_to_one, {0, 4}).x, (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(make<float>(data_, one_to_one, {2, 2}).x, (std::vector<double>{0, 1}));
}

TEST_F(Hdf5OfOthers, BytesMayHaveEitherOrder) {
  const std::vector<double> values{1, -2, 3e10, 0.5};
  write("x", H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, values.data());
  file_->close();
  data_test::check(data_, one_to_one);
  EXPECT_EQ(make(data_, one_to_one, {0, 4}).x, values);
}

TEST_F(Hdf5OfOthers, AMissingFilterIsNamed) {
  constexpr H5Z_filter_t lzf = 32000;  // the number that h5py has for it
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, lzf, 1, 1, "lzf", nullptr, nullptr, pass_on};
  ASSERT_GE(H5Zregister(&filter), 0);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 1, &samples_of_others);
  H5Pset_filter(creation, lzf, H5Z_FLAG_OPTIONAL, 0, nullptr);
  const std::vector<double> values(samples_of_others, 1);
  write("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data(), creation);
  H5Pclose(creation);
  file_->close();
  data_test::check(data_, one_to_one);
  H5Zunregister(lzf);
  EXPECT_EQ(rejection_of(data_, one_to_one),
            "x: is packed with the HDF5 filter 32000 \"lzf\", which is not installed: name its "
            "directory in HDF5_PLUGIN_PATH, or pack with gzip instead");
}

TEST_F(Hdf5OfOthers, NanIsRejectedWithFileArrayAndPlace) {
  const std::vector<double> values{1, 2, std::numeric_limits<double>::quiet_NaN(), 3};
  write("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data());
  file_->close();
  EXPECT_EQ(error_of([&] {
              make(data_, one_to_one, {2, 2});
            }),
            "data.x = x: has nan in row 2, column 0 in " + data_.file +
                ", counted from 0, which is not finite in float64; data.allow_nonfinite = true "
                "trains on it");
  data_.allow_nonfinite = true;
  EXPECT_TRUE(std::isnan(make(data_, one_to_one, {2, 1}).x[0]));
}

}  // namespace
}  // namespace tessera
