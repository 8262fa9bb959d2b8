// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/contents.hpp>
#include <tessera/checkpoint/hyperslabs.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

constexpr std::string_view parameters_group = "parameters/";

/// The name of a parameter in PyTorch. `transposed`: its two dimensions change places.
struct PytorchName {
  std::string_view name, there;
  bool transposed = false;
};
constexpr std::array<PytorchName, 4> pytorch_names{
    {{"kernel", "weight", true}, {"scale", "weight"}, {"table", "weight"}, {"bias", "bias"}}};

/// One array as it is written.
struct ExportedArray {
  std::string name;
  ArrayFacts source;
  bool transposed = false;

  Shape shape() const {
    return transposed ? Shape{source.shape[1], source.shape[0]} : source.shape;
  }
  Size bytes() const { return num_elements(source.shape) * size_of(source.type); }
};

ExportedArray exported(const ArrayFacts& facts, ExportNames names) {
  ExportedArray array{facts.name.substr(parameters_group.size()), facts};
  if (names == ExportNames::tessera) return array;
  const std::size_t slash = array.name.rfind('/');
  std::string layer = array.name.substr(0, slash), name = array.name.substr(slash + 1);
  for (const PytorchName& row : pytorch_names)
    if (row.name == name) {
      array.transposed = row.transposed && facts.shape.size() == 2;
      name = row.there;
      break;
    }
  array.name = layer + "." + name;
  std::replace(array.name.begin(), array.name.end(), '/', '.');
  return array;
}

template <class T>
void write_array(std::ostream& out, const Hdf5File& file, const std::string& path,
                 const ExportedArray& array) {
  const Shape& shape = array.source.shape;
  const Size all = num_elements(shape);
  std::vector<T> values(all);
  file.read(array.source.name, array.source.type,
            hyperslabs_of({Shape(shape.size(), 0), shape}, {0, all}), values.data());
  check_hash(file, path, array.source.name, hash_of_run(values.data(), all, 0));
  if (array.transposed) {
    std::vector<T> other(values.size());
    for (Size i = 0; i < shape[0]; ++i)
      for (Size j = 0; j < shape[1]; ++j) other[j * shape[0] + i] = values[i * shape[1] + j];
    values = std::move(other);
  }
  out.write(reinterpret_cast<const char*>(values.data()), array.bytes());
}

/// Length of a JSON object as 64 bits, the object, padded with blanks to a multiple of 8, and the
/// values one behind the other (github.com/huggingface/safetensors, "Format").
std::string safetensors_header(const std::vector<ExportedArray>& arrays) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  Size begin = 0;
  for (const ExportedArray& array : arrays) {
    header[array.name] = {{"dtype", array.source.type == DType::float64 ? "F64" : "F32"},
                          {"shape", array.shape()},
                          {"data_offsets", {begin, begin + array.bytes()}}};
    begin += array.bytes();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

void write_arrays(std::ostream& out, const Hdf5File& file, const std::string& checkpoint,
                  const std::vector<ExportedArray>& arrays) {
  out << safetensors_header(arrays);
  for (const ExportedArray& array : arrays)
    if (array.source.type == DType::float64)
      write_array<double>(out, file, checkpoint, array);
    else
      write_array<float>(out, file, checkpoint, array);
}

}  // namespace

std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportNames names) {
  read_state(checkpoint);
  const Hdf5File file = Hdf5File::open(checkpoint);
  check_contents(file, checkpoint);
  std::vector<ExportedArray> arrays;
  for (const ArrayFacts& facts : file.arrays())
    if (facts.name.starts_with(parameters_group)) arrays.push_back(exported(facts, names));
  write_whole(to, [&](std::ostream& out) { write_arrays(out, file, checkpoint, arrays); });
  return arrays.size();
}

}  // namespace tessera
