// SPDX-License-Identifier: Apache-2.0
// Files of other programs: the values that they hold, and whatever else they may be.
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/half_float.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/process/outcome.hpp>

#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera {
namespace {

using test::TemporaryDirectory;

std::string length_of(std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

std::string file_with(const std::string& header, std::size_t value_bytes) {
  return length_of(header.size()) + header + std::string(value_bytes, 'x');
}

std::string entry(const std::string& name, const char* type, const char* shape, int begin,
                  int end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, type,
                     shape, begin, end);
}

/// Two matrices and a vector whose elements are their places.
std::string valid_file() {
  std::string file = safetensors_header({{"layer1/kernel", {2, 3}, DType::float32},
                                         {"layer1/bias", {3}, DType::float64},
                                         {"layer2/kernel", {3, 1}, DType::bfloat16}});
  for (const float v : {0, 1, 2, 3, 4, 5}) file.append(reinterpret_cast<const char*>(&v), 4);
  for (const double v : {0, 1, 2}) file.append(reinterpret_cast<const char*>(&v), 8);
  for (const BFloat16 v : {BFloat16(0), BFloat16(1), BFloat16(2)})
    file.append(reinterpret_cast<const char*>(&v), 2);
  return file;
}

TEST(Safetensors, ReadsRunsOfElements) {
  const TemporaryDirectory directory;
  const SafetensorsFile file(directory.write("model", valid_file()));
  ASSERT_EQ(file.arrays().size(), 3U);
  const SafetensorsArray& kernel = file.arrays().at("layer1/kernel");
  EXPECT_EQ(kernel.shape, (Shape{2, 3}));
  EXPECT_EQ(kernel.dtype(), DType::float32);
  std::vector<float> values(3);
  file.read(kernel, 2, 3, values.data());
  EXPECT_EQ(values, (std::vector<float>{2, 3, 4}));
  std::vector<double> doubles(2);
  file.read(file.arrays().at("layer1/bias"), 1, 2, doubles.data());
  EXPECT_EQ(doubles, (std::vector<double>{1, 2}));
  std::vector<BFloat16> halves(3);
  file.read(file.arrays().at("layer2/kernel"), 0, 3, halves.data());
  EXPECT_EQ(static_cast<float>(halves[2]), 2);
}

TEST(Safetensors, ReadsArraysOfOtherProgramsInAnyOrder) {
  const TemporaryDirectory directory;
  const std::string header = "{" + entry("z", "F32", "[1]", 8, 12) +
                             R"(,"__metadata__":{"a":"b"},)" + entry("counts", "I64", "[]", 0, 8) +
                             "," + entry("none", "F16", "[0, 7]", 8, 8) + "}   ";
  const SafetensorsFile file(directory.write("model", file_with(header, 12)));
  ASSERT_EQ(file.arrays().size(), 3U);
  EXPECT_EQ(file.arrays().at("counts").dtype(), std::nullopt);
  std::string value(4, '\0');
  file.read(file.arrays().at("z"), 0, 1, value.data());
  EXPECT_EQ(value, "xxxx");
  file.read(file.arrays().at("none"), 0, 0, nullptr);
}

// Other programs read the values in place, so they begin where the header says.
TEST(Safetensors, WritesTextsScalarsAndArraysWithoutElements) {
  const TemporaryDirectory directory;
  const std::string text = R"({"a": ["\"", 1.5]})";
  for (const Size alignment : {8, 4096}) {
    std::string bytes = safetensors_header({{"scalar", {}, DType::float64},
                                            {"none", {0, 7}, DType::float32},
                                            {"half", {3}, DType::float16}},
                                           {{"state", text}}, alignment);
    EXPECT_EQ(std::ssize(bytes) % alignment, 0);
    bytes.append(14, 'x');
    const SafetensorsFile file(directory.write("model", bytes));
    EXPECT_EQ(file.metadata(),
              (std::map<std::string, std::string>{{"format", "pt"}, {"state", text}}));
    EXPECT_EQ(file.header(), bytes.substr(8, bytes.size() - 22));
    EXPECT_EQ(file.arrays().at("scalar").shape, Shape{});
    EXPECT_EQ(file.arrays().at("scalar").bytes, (Range{std::ssize(bytes) - 14, 8}));
    EXPECT_EQ(file.arrays().at("none").shape, (Shape{0, 7}));
    EXPECT_EQ(file.arrays().at("none").bytes.count, 0);
    EXPECT_EQ(file.arrays().at("half").bytes, (Range{std::ssize(bytes) - 6, 6}));
  }
}

TEST(Safetensors, RejectsWhatIsNoFileOfThisFormat) {
  const TemporaryDirectory directory;
  const std::string none = "is not a safetensors file, or is cut off";
  const std::string no_json = "its header is no JSON object";
  const std::string one = "{" + entry("a", "F32", "[1]", 0, 4);
  const std::vector<std::pair<std::string, std::string>> files{
      {"", none},
      {"short", none},
      {"text that is longer than a length", none},
      {length_of(2), none},
      {length_of(1) + "{", none},
      {length_of(100) + "{}", none},
      {length_of(~std::uint64_t{0}) + "{}", none},
      {length_of(std::uint64_t{1} << 63) + "{}", none},
      {file_with("[]", 0), none},
      {"\x89HDF\r\n\x1a\n and more",
       "is an HDF5 file; if it is a checkpoint of Tessera 0.2, export it with `tessera checkpoint "
       "export` of that version"},
      {file_with("{} {", 0), no_json},
      {file_with("{\"a\xff\": 1}", 0), no_json},
      {file_with("{\"a\": 1", 0), no_json},
      {file_with("{\"a\": 1}", 0), "a: must have dtype, shape and two data_offsets"},
      {file_with("{\"a\\nb\": []}", 0), "a b: must have dtype, shape and two data_offsets"},
      {file_with(one + R"(,"a":1})", 4), "its header: repeats a name"},
      {file_with(R"({"a":{"dtype":"F32","dtype":"F64","shape":[],"data_offsets":[0,4]}})", 4),
       "its header: repeats a name"},
      {file_with("{\"a\":" + std::string(100000, '[') + "}", 0),
       "its header: is nested too deeply"},
      {file_with("{" + entry("a", "F32", "[[1]]", 0, 4) + "}", 4),
       "its header: is nested too deeply"},
      {file_with("{" + entry("a", "F32", "[-1]", 0, 4) + "}", 4),
       "a: has a size that is no natural number"},
      {file_with("{" + entry("a", "F32", "[1.0]", 0, 4) + "}", 4),
       "a: has a size that is no natural number"},
      {file_with("{" + entry("a", "F32", "[9223372036854775808]", 0, 4) + "}", 4),
       "a: has a size that is no natural number"},
      {file_with("{" + entry("a", "F32", "[4294967296, 4294967296, 4294967296]", 0, 0) + "}", 0),
       "a: has other bytes than its shape needs"},
      {file_with("{" + entry("a", "F32", "[2]", 0, 4) + "}", 4),
       "a: has other bytes than its shape needs"},
      {file_with("{" + entry("a", "I8", "[2]", 4, 2) + "}", 4), "a: ends before it begins"},
      {file_with(one + "," + entry("b", "F32", "[1]", 0, 4) + "}", 4),
       "its arrays overlap or leave a gap at byte 0 of the values"},
      {file_with(one + "," + entry("b", "F32", "[1]", 2, 6) + "}", 8),
       "its arrays overlap or leave a gap at byte 2 of the values"},
      {file_with(one + "," + entry("b", "F32", "[1]", 8, 12) + "}", 12),
       "its arrays overlap or leave a gap at byte 4 of the values"},
      {file_with(one + "}", 3), "has 3 bytes of values, but its header describes 4"},
      {file_with(one + "}", 5), "has 5 bytes of values, but its header describes 4"}};
  for (const auto& [bytes, message] : files) {
    const std::string path = directory.write("file", bytes);
    EXPECT_EQ(test::error_of([&] { SafetensorsFile{path}; }), path + ": " + message)
        << bytes.substr(0, 200);
  }
  EXPECT_EQ(test::error_of([&] { SafetensorsFile{directory.path().string()}; }),
            directory.path().string() + ": must be a regular file, not a directory");
}

/// Reads all of a file that may be damaged. Every outcome but a crash is fine: a bit flip in a
/// value is not detected.
void read_whatever_it_is(const std::string& path) {
  const Outcome outcome = outcome_of([&] {
    const SafetensorsFile file(path);
    for (const auto& [name, array] : file.arrays()) {
      if (!array.dtype()) continue;
      const Size elements = num_elements(array.shape);
      ASSERT_LE(elements, 1000);
      std::vector<double> values(elements);
      file.read(array, 0, elements, values.data());
    }
  });
  if (!outcome.failed()) return;
  EXPECT_EQ(outcome.code, ExitCode::usage) << outcome.message;
  EXPECT_TRUE(outcome.message.starts_with(path + ": ")) << outcome.message;
  EXPECT_LT(outcome.message.size(), path.size() + 200);
}

TEST(Safetensors, NeitherCutsNorFlippedBytesCrash) {
  const TemporaryDirectory directory;
  const std::string whole = valid_file();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string path = directory.write("file", whole.substr(0, length));
    EXPECT_EQ(outcome_of([&] { SafetensorsFile{path}; }).code, ExitCode::usage) << length;
  }
  // Neighbours, digits and brackets give other valid headers more often than random bytes do.
  for (std::size_t at = 0; at < whole.size() - 54; ++at)
    for (const char byte : {'\0', '0', '9', '"', '{', '}', '[', ',', '-', ' ', '\xff',
                            static_cast<char>(whole[at] ^ 1)}) {
      std::string changed = whole;
      changed[at] = byte;
      read_whatever_it_is(directory.write("file", changed));
    }
}

}  // namespace
}  // namespace tessera
