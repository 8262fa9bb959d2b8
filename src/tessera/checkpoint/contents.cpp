// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/contents.hpp>

namespace tessera {
namespace {

constexpr const char* contents_name = "contents";

}  // namespace

std::vector<ArrayFacts> arrays_of(const std::vector<CheckpointTensor>& tensors) {
  std::vector<ArrayFacts> arrays;
  for (const CheckpointTensor& tensor : tensors)
    arrays.push_back({tensor.name, tensor.shape, tensor.type});
  return arrays;
}

void check_arrays(const Hdf5File& file, const std::string& path,
                  const std::vector<ArrayFacts>& wanted, const char* where) {
  std::map<std::string, ArrayFacts> found;
  for (ArrayFacts& facts : file.arrays()) found.emplace(facts.name, facts);
  for (const ArrayFacts& array : wanted) {
    const auto at = found.find(array.name);
    if (at == found.end()) throw Error(ExitCode::usage, "{}: {}: is missing", path, array.name);
    if (at->second.shape != array.shape)
      throw Error(ExitCode::usage, "{}: {}: has shape {}, but shape {} {}", path, array.name,
                  to_string(at->second.shape), to_string(array.shape), where);
    if (at->second.type != array.type)
      throw Error(ExitCode::usage, "{}: {}: has element type {}, but type {} {}", path, array.name,
                  name_of(at->second.type), name_of(array.type), where);
  }
}

void add_contents(Hdf5File& file, const std::vector<CheckpointTensor>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckpointTensor& tensor : tensors)
    list.push_back(
        {{"name", tensor.name}, {"type", name_of(tensor.type)}, {"shape", tensor.shape}});
  const std::string text = list.dump();
  file.add_text(contents_name, text);
  file.set_attribute(contents_name, checksum_attribute, hash_of_text(text));
}

void check_contents(const Hdf5File& file, const std::string& path) {
  if (file.attribute("", "format_version") == AttributeValue(Size{1})) return;
  const std::string text = file.text(contents_name);
  check_hash(file, path, contents_name, hash_of_text(text));
  std::vector<ArrayFacts> arrays;
  try {
    for (const nlohmann::json& row : nlohmann::json::parse(text))
      arrays.push_back({row.at("name"), row.at("shape").get<Shape>(),
                        value_named<DType>(row.at("type").get<std::string>()).value()});
  } catch (const std::exception&) {
    throw Error(ExitCode::usage, "{}: {}: is not a list of arrays", path, contents_name);
  }
  check_arrays(file, path, arrays, "when it was written");
}

}  // namespace tessera
