// SPDX-License-Identifier: Apache-2.0
// The safetensors format (github.com/huggingface/safetensors, "Format"): the length of a JSON
// header in 8 bytes, the header, and the values of all arrays one behind the other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/placement.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/io/durable_file.hpp>

namespace tessera {

/// Name, shape and type of an array that is written.
struct ArrayFacts {
  std::string name;
  Shape shape;
  DType type = DType::float32;
};

/// Returns the beginning of a file with these arrays of floating-point numbers, up to the first
/// value, which stands at a multiple of `alignment` bytes. `metadata`: texts of `__metadata__`.
std::string safetensors_header(const std::vector<ArrayFacts>& arrays,
                               const std::map<std::string, std::string>& metadata = {},
                               Size alignment = 8);

/// One array of a file, row-major and little-endian.
struct SafetensorsArray {
  std::string type;  ///< as in the file: "F32", "BF16", "I64"
  Shape shape;
  Range bytes;  ///< place in the file
  /// Returns the element type of an array of floating-point numbers of 16 to 64 bits.
  std::optional<DType> dtype() const;
};

/// A file that any program may have written, open for reading. The constructor checks the whole
/// header. Failures throw Error (usage) with the path.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, SafetensorsArray>& arrays() const { return arrays_; }
  /// Returns the texts of `__metadata__`.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Returns the header as it is in the file, after the 8 bytes of its length.
  const std::string& header() const { return header_; }
  /// Reads `count` elements from element `first` of an array that has a dtype().
  void read(const SafetensorsArray& array, Size first, Size count, void* values) const;

 private:
  void read_header(Size file_bytes);

  std::string path_;
  OpenFile file_;
  std::string header_;
  std::map<std::string, SafetensorsArray> arrays_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace tessera
