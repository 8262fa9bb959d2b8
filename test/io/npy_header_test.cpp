// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <tessera/io/npy_header.hpp>

namespace tessera {
namespace {

/// A header of version 1 with this dictionary.
std::string with_dictionary(const std::string& text, char version = 1) {
  std::string header = "\x93NUMPY";
  header += {version, 0};
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  if (version > 1) header.append(2, '\0');
  return header + text;
}

const std::string plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";

TEST(NpyHeader, ReadsWhatItWrites) {
  for (const Shape& shape : {Shape{7}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
    const std::string written = npy_header(DType::float64, shape);
    const auto read = parse_npy_header(written + "values");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->type, "<f8");
    EXPECT_FALSE(read->is_fortran_order);
    EXPECT_EQ(read->shape, shape);
    EXPECT_EQ(read->bytes, static_cast<Size>(written.size()));
    EXPECT_EQ(written.size() % 64, 0U);
  }
}

TEST(NpyHeader, MayHaveAnyVersionOrderAndSpaces) {
  for (const char version : {1, 2, 3}) {
    const auto read = parse_npy_header(with_dictionary(plain + "  \n", version));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->shape, (Shape{3, 4}));
  }
  const auto read = parse_npy_header(
      with_dictionary("{\"shape\":( ) , 'fortran_order' :True,'descr': [('a', '<f4', [2])]}"));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->shape.empty());
  EXPECT_TRUE(read->is_fortran_order);
  EXPECT_EQ(read->type, "[...]");
}

TEST(NpyHeader, RejectsIncompleteAndOtherText) {
  const std::string whole = with_dictionary(plain);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(parse_npy_header(whole.substr(0, length))) << length;
  EXPECT_FALSE(parse_npy_header(with_dictionary(plain, 0)));
  EXPECT_FALSE(parse_npy_header(with_dictionary(plain, 4)));
  for (const char* wrong :
       {"", "{", "{}", "[]", "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': [[, 'fortran_order': False, 'shape': (3,)}"})
    EXPECT_FALSE(parse_npy_header(with_dictionary(wrong))) << wrong;
}

}  // namespace
}  // namespace tessera
