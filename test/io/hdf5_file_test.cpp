// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/io/hdf5_file.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::TemporaryDirectory;

std::vector<Hyperslab> all_of(const Shape& shape) { return {{Shape(shape.size(), 0), shape}}; }

TEST(Hdf5File, KeepsArraysTextsAndAttributes) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "a.h5";
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<double> few{0.5};
  {
    Hdf5File file = Hdf5File::create(path);
    file.add_array({"group/inner/a", {2, 3}, DType::float32});
    file.add_array({"b", {1}, DType::float64});
    file.add_array({"none", {0, 3}, DType::float64});
    file.add_text("text", "several\nlines");
    file.add_text("empty", "");
    file.write("group/inner/a", DType::float32, all_of({2, 3}), values.data());
    file.write("b", DType::float64, all_of({1}), few.data());
    file.set_attribute("", "step", Size{-3});
    file.set_attribute("b", "name", std::string("mlp"));
    file.set_attribute("b", "rate", 0.25);
    file.set_attribute("b", "rate", 0.75);
    file.close();
  }
  const Hdf5File file = Hdf5File::open(path);
  std::vector<std::string> names;
  for (const ArrayFacts& facts : file.arrays()) names.push_back(facts.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "group/inner/a", "none"}));
  EXPECT_EQ(file.arrays()[1].shape, (Shape{2, 3}));
  EXPECT_EQ(file.arrays()[2].shape, (Shape{0, 3}));
  EXPECT_EQ(file.arrays()[1].type, DType::float32);
  std::vector<float> read(6);
  file.read("group/inner/a", DType::float32, all_of({2, 3}), read.data());
  EXPECT_EQ(read, values);
  EXPECT_EQ(file.text("text"), "several\nlines");
  EXPECT_EQ(file.text("empty"), "");
  EXPECT_EQ(file.attribute("", "step"), AttributeValue(Size{-3}));
  EXPECT_EQ(file.attribute("b", "name"), AttributeValue(std::string("mlp")));
  EXPECT_EQ(file.attribute("b", "rate"), AttributeValue(0.75));
}

// Other programs may map these elements, and threads of checkpoints write them.
TEST(Hdf5File, StoresElementsContiguouslyAtTheirPlace) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "a.h5";
  {
    Hdf5File file = Hdf5File::create(path);
    file.add_array({"a", {2, 2}, DType::float64});
    file.add_array({"large", {1 << 18}, DType::float32});
    file.add_array({"none", {0}, DType::float32});
    file.close();
  }
  const Hdf5File file = Hdf5File::open(path);
  EXPECT_EQ(file.place_of("large") % (1 << 20), 0);
  EXPECT_NE(error_of([&] { file.place_of("none"); }).find("none: is not stored contiguously"),
            std::string::npos);
  const std::vector<double> values{1, 2, 3, 4};
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(file.place_of("a"))
      .write(reinterpret_cast<const char*>(values.data()), 4 * sizeof(double));
  std::vector<double> read(4);
  Hdf5File::open(path).read("a", DType::float64, all_of({2, 2}), read.data());
  EXPECT_EQ(read, values);
}

TEST(Hdf5File, ReadsSeveralHyperslabsInOrder) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "a.h5";
  std::vector<double> values(20);
  std::iota(values.begin(), values.end(), 0);
  Hdf5File file = Hdf5File::create(path);
  file.add_array({"a", {4, 5}, DType::float64});
  file.write("a", DType::float64, all_of({4, 5}), values.data());
  const std::vector<Hyperslab> slabs{{{0, 3}, {1, 2}}, {{1, 0}, {2, 5}}, {{3, 0}, {1, 1}}};
  std::vector<double> read(13);
  file.read("a", DType::float64, slabs, read.data());
  std::iota(values.begin(), values.begin() + 13, 3);
  EXPECT_EQ(read, std::vector<double>(values.begin(), values.begin() + 13));
}

TEST(Hdf5File, ReportsWhatIsWrong) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "a.h5";
  {
    Hdf5File file = Hdf5File::create(path);
    file.add_array({"a", {4}, DType::float64});
    file.close();
  }
  const Hdf5File file = Hdf5File::open(path);
  std::vector<double> values(8);
  EXPECT_EQ(error_of([&] { file.read("a", DType::float64, all_of({5}), values.data()); }),
            path + ": a: is smaller than the requested part");
  EXPECT_TRUE(
      error_of([&] { file.attribute("a", "b"); }).starts_with(path + ": a/b: can't locate"));
  EXPECT_TRUE(error_of([&] { file.text("b"); }).starts_with(path + ": b: "));
  const std::string nothing = directory.path() / "nothing", text = directory.write("text", "x");
  EXPECT_EQ(error_of([&] { Hdf5File::open(nothing); }),
            nothing + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of([&] { Hdf5File::open(directory.path()); }),
            directory.path().string() + ": must be a regular file, not a directory");
  EXPECT_TRUE(error_of([&] {
                Hdf5File::open(text);
              }).starts_with(text + ": is not a complete HDF5 file: file signature not found"));
  EXPECT_TRUE(error_of([&] { Hdf5File::create(nothing + "/a.h5"); }).starts_with(nothing));
}

}  // namespace
}  // namespace tessera
