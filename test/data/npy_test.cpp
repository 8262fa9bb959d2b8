// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using data_test::error_of;
using data_test::expect_reproducible;
using data_test::Made;
using data_test::make;
using data_test::rejection_of;
using test::TemporaryDirectory;

const ModelSpec two_to_one = mlp({.widths = {2, 3, 1}});

/// Returns a .npy file. `type` and `shape` are written to its header.
template <class T>
std::string npy_text(const std::string& type, const std::string& shape,
                     const std::vector<T>& values, const std::string& is_fortran = "False") {
  const std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n",
                                       type, is_fortran, shape);
  std::string file = "\x93NUMPY";
  file += {1, 0, static_cast<char>(text.size()), 0};
  file += text;
  return file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <class T>
std::vector<T> counted(std::size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T(0));
  return values;
}

/// x (5, 2) counts from 0, y (5, 1) too.
class NpyData : public testing::Test {
 protected:
  NpyData() {
    write_x(npy_text("<f4", "(5, 2)", counted<float>(10)));
    data_.y = directory_.write("y.npy", npy_text("<f8", "(5,)", counted<double>(5)));
  }

  void write_x(const std::string& text) { data_.x = directory_.write("x.npy", text); }

  /// Returns the rejection of this x.
  std::string rejection_of_x(const std::string& text) {
    write_x(text);
    const std::string message = rejection_of(data_, two_to_one);
    const std::string start = "data.x = " + data_.x + ": ";
    EXPECT_TRUE(message.starts_with(start)) << message;
    return message.substr(std::min(start.size(), message.size()));
  }

  TemporaryDirectory directory_;
  DataConfig data_{.kind = DataKind::npy, .samples = 5};
};

TEST_F(NpyData, SamplesAreRows) {
  data_test::check(data_, two_to_one);
  EXPECT_EQ(make(data_, two_to_one, {1, 2}), (Made{{2, 3, 4, 5}, {1, 2}}));
  EXPECT_EQ(make<float>(data_, two_to_one, {4, 1}), (Made{{8, 9}, {4}}));
  expect_reproducible(data_, two_to_one, false);
}

TEST_F(NpyData, ElementsOfAllTypesAndByteOrdersAreConverted) {
  const auto expect_values = [&]<class T>(const std::string& type, T) {
    for (const char order : {'<', '>'}) {
      SCOPED_TRACE(order + type);
      std::vector<T> values = counted<T>(10);
      const T least = values[3] = std::numeric_limits<T>::lowest();
      if (order == '>')
        for (T& value : values) {
          auto* const bytes = reinterpret_cast<unsigned char*>(&value);
          std::reverse(bytes, bytes + sizeof(T));
        }
      write_x(npy_text((sizeof(T) == 1 ? '|' : order) + type, "(5, 2)", values));
      data_test::check(data_, two_to_one);
      EXPECT_EQ(make(data_, two_to_one, {1, 1}).x,
                (std::vector<double>{2, static_cast<double>(least)}));
    }
  };
  expect_values("u1", std::uint8_t());
  expect_values("i1", std::int8_t());
  expect_values("u2", std::uint16_t());
  expect_values("i2", std::int16_t());
  expect_values("u4", std::uint32_t());
  expect_values("i4", std::int32_t());
  expect_values("u8", std::uint64_t());
  expect_values("i8", std::int64_t());
  expect_values("f4", float());
  expect_values("f8", double());
  for (const auto& [type, half] : {std::pair("<f2", 0x3e00), std::pair(">f2", 0x003e)}) {
    write_x(
        npy_text(type, "(5, 2)", std::vector<std::uint16_t>(10, static_cast<std::uint16_t>(half))));
    EXPECT_EQ(make(data_, two_to_one, {0, 1}).x, (std::vector<double>{1.5, 1.5}));
  }
  write_x(npy_text("|b1", "(5, 2)", std::vector<std::uint8_t>(10, 1)));
  EXPECT_EQ(make(data_, two_to_one, {0, 1}).x, (std::vector<double>{1, 1}));
}

// Many pieces of 4 MiB.
TEST_F(NpyData, LargeBlocksAreReadPieceByPiece) {
  constexpr Size rows = 700001;
  write_x(npy_text("<i4", fmt::format("({}, 2)", rows), counted<std::int32_t>(2 * rows)));
  data_.y = directory_.write(
      "y.npy", npy_text("|u1", fmt::format("({}, 1)", rows), std::vector<std::uint8_t>(rows, 7)));
  data_.samples = rows;
  const Made made = make(data_, two_to_one, {1, rows - 1});
  for (std::size_t i = 0; i < made.x.size(); ++i)
    ASSERT_EQ(made.x[i], static_cast<double>(i + 2)) << i;
  EXPECT_EQ(made.y, std::vector<double>(rows - 1, 7));
}

/// Numbers that count in C order, as they stand in Fortran order.
std::vector<float> by_column(Size samples, const std::vector<Size>& sample) {
  std::vector<float> values;
  const Size elements = num_elements(sample);
  // The first index is the fastest: that of the samples, then those of a sample.
  std::vector<Size> index(sample.size(), 0);
  for (Size column = 0; column < elements; ++column) {
    Size place = 0;
    for (std::size_t d = 0; d < sample.size(); ++d) place = place * sample[d] + index[d];
    for (Size i = 0; i < samples; ++i) values.push_back(static_cast<float>(i * elements + place));
    for (std::size_t d = 0; d < sample.size() && ++index[d] == sample[d]; ++d) index[d] = 0;
  }
  return values;
}

TEST_F(NpyData, FortranOrderIsTurnedIntoRows) {
  ASSERT_EQ(by_column(2, {3}), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  write_x(npy_text("<f4", "(5, 2)", by_column(5, {2}), "True"));
  data_test::check(data_, two_to_one);
  EXPECT_EQ(make(data_, two_to_one, {1, 3}).x, (std::vector<double>{2, 3, 4, 5, 6, 7}));
  expect_reproducible(data_, two_to_one, false);
  // numpy.arange(120).reshape(5, 2, 3, 4), in pieces of 4 MiB and smaller ones.
  const ModelSpec many_to_one = mlp({.widths = {24, 1}});
  write_x(npy_text("<f4", "(5, 2, 3, 4)", by_column(5, {2, 3, 4}), "True"));
  data_test::check(data_, many_to_one);
  EXPECT_EQ(make(data_, many_to_one, {0, 5}).x, counted<double>(120));
  expect_reproducible(data_, many_to_one, false);
}

TEST_F(NpyData, NanAndInfinityAreRejectedWithTheirPlace) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                  infinity = std::numeric_limits<float>::infinity();
  const auto error_of_samples = [&](Range samples) {
    return error_of([&] { make<float>(data_, two_to_one, samples); });
  };
  write_x(npy_text("<f4", "(5, 2)", std::vector<float>{0, 1, 2, nan, 4, -infinity, 6, 7, 8, 9}));
  data_test::check(data_, two_to_one);
  EXPECT_EQ(error_of_samples({0, 5}),
            "data.x = " + data_.x +
                ": has nan in row 1, column 1, counted from 0, which is not finite in float32; "
                "data.allow_nonfinite = true trains on it");
  EXPECT_NE(error_of_samples({2, 3}).find("has -inf in row 2, column 1"), std::string::npos);
  EXPECT_EQ(make<float>(data_, two_to_one, {3, 1}).x, (std::vector<double>{6, 7}));
  data_.allow_nonfinite = true;
  const Made made = make<float>(data_, two_to_one, {1, 2});
  EXPECT_TRUE(std::isnan(made.x[1]));
  EXPECT_EQ(made.x[3], -infinity);
  // A number may be finite in the file and too large for the model's type.
  data_.allow_nonfinite = false;
  std::vector<double> x = counted<double>(10);
  x[6] = -1e300;
  write_x(npy_text("<f8", "(5, 2)", x));
  EXPECT_EQ(make(data_, two_to_one, {3, 1}).x[0], -1e300);
  EXPECT_NE(error_of_samples({0, 5}).find("has -inf in row 3, column 0"), std::string::npos);
}

TEST_F(NpyData, AcceptsAnyShapeWithAsManyNumbersPerSample) {
  for (const char* shape : {"(5, 2, 1)", "(5, 1, 2)", "(5,1,1,2)"}) {
    write_x(npy_text("<f4", shape, counted<float>(10)));
    data_test::check(data_, two_to_one);
    EXPECT_EQ(make(data_, two_to_one, {1, 1}).x, (std::vector<double>{2, 3}));
  }
  EXPECT_EQ(rejection_of_x(npy_text("<f4", "(5, 3)", counted<float>(15))),
            "has shape (5, 3), but the model needs (samples, 2) or another shape with 2 numbers "
            "per sample");
  for (const char* shape : {"()", "(5,)", "(5, 0)", "(5, 2, 2)", "(5, 4294967296, 4294967296, 2)"})
    EXPECT_TRUE(rejection_of_x(npy_text("<f4", shape, counted<float>(10)))
                    .ends_with("but the model needs (samples, 2) or another shape with 2 numbers "
                               "per sample"));
  const ModelSpec sequences = transformer({.vocabulary = 7, .context = 3});
  EXPECT_TRUE(rejection_of(data_, sequences)
                  .ends_with("but the model needs (samples, 3, 1) or another shape with 3 numbers "
                             "per sample"));
}

TEST_F(NpyData, ValidationSamplesFollowTheOthers) {
  data_.samples = 3;
  data_.validation_samples = 2;
  data_test::check(data_, two_to_one);
  data_.validation_samples = 3;
  EXPECT_EQ(rejection_of(data_, two_to_one),
            "data.x = " + data_.x +
                ": has shape (5, 2), but 6 samples are needed (data.samples = 3, "
                "data.validation_samples = 3); data.samples = \"all\" takes what there is");
  EXPECT_EQ(samples_in_files(data_, two_to_one), 2);
  data_.validation_samples = 5;
  EXPECT_EQ(error_of([&] { samples_in_files(data_, two_to_one); }),
            "data.validation_samples = 5: must be less than the 5 samples of data.x");
}

TEST_F(NpyData, RejectsOtherFormatsAndTruncation) {
  const std::string none = "is not a NumPy array file: it does not begin with the .npy header";
  EXPECT_EQ(rejection_of_x(""), none);
  EXPECT_EQ(rejection_of_x("1 2 3"), none);
  EXPECT_EQ(rejection_of_x("PK\x03\x04"), none);
  const std::string known =
      ", but must have one of b1, i1, u1, i2, u2, i4, u4, i8, u8, f2, f4, f8, of either byte order";
  for (const char* type : {"|f4", "<c8", "|O", "<U3", "<f16", "=i8", "<M8[s]", "f4", "<", ""})
    EXPECT_EQ(rejection_of_x(npy_text(type, "(5, 2)", counted<float>(10))),
              fmt::format("has element type {}{}", type, known));
  EXPECT_EQ(rejection_of_x(npy_text("<f4", "(5, 2)", counted<float>(9))),
            "is truncated after 4 of its 5 samples");
  EXPECT_EQ(rejection_of_x(npy_text("<f4", "(5, 2)", counted<float>(9), "True")),
            "is truncated after 9 numbers");
  EXPECT_EQ(rejection_of_x(npy_text("<f4", "(1152921504606846977, 2)", counted<float>(10))),
            "is truncated after 5 of its 1152921504606846977 samples");
}

TEST_F(NpyData, ClassesMustBeThoseOfTheModel) {
  const ModelSpec sequences = transformer({.vocabulary = 7, .context = 2});
  data_.samples = 3;
  const auto rejection_of_classes = [&](const std::vector<float>& x) {
    write_x(npy_text("<f4", "(3, 2)", x));
    data_.y = directory_.write("y.npy", npy_text("|i1", "(3, 2)", counted<std::int8_t>(6)));
    return error_of([&] { make(data_, sequences, {1, 2}); });
  };
  const std::string needed = ", but the model needs integers from 0 to 6";
  EXPECT_EQ(rejection_of_classes({9, 9, 1, 2, 3, 7}),
            "data.x = " + data_.x + ": has 7 in sample 2" + needed);
  EXPECT_EQ(rejection_of_classes({9, 9, 1, 2.5, 3, 6}),
            "data.x = " + data_.x + ": has 2.5 in sample 1" + needed);
  EXPECT_EQ(rejection_of_classes({9, 9, -1, 2, 3, 6}),
            "data.x = " + data_.x + ": has -1 in sample 1" + needed);
}

TEST_F(NpyData, AnIgnoredTargetNeedNotBeAClass) {
  ModelSpec sequences = transformer({.vocabulary = 7, .context = 2});
  data_.samples = 3;
  write_x(npy_text("<f4", "(3, 2)", counted<float>(6)));
  data_.y =
      directory_.write("y.npy", npy_text("<f4", "(3, 2)", std::vector<float>{0, 6, -1, 2, 3, -1}));
  const auto rejection_of_targets = [&] {
    return error_of([&] { make(data_, sequences, {0, 3}); });
  };
  EXPECT_EQ(
      rejection_of_targets(),
      "data.y = " + data_.y + ": has -1 in sample 1, but the model needs integers from 0 to 6");
  sequences.ignore_index = -1;
  EXPECT_EQ(make(data_, sequences, {1, 1}).y, (std::vector<double>{-1, 2}));
  sequences.ignore_index = -2;
  EXPECT_NE(rejection_of_targets(), "");
}

}  // namespace
}  // namespace tessera
