// SPDX-License-Identifier: Apache-2.0
#include <ostream>
#include <vector>

#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>
#include <tessera/checkpoint/contents.hpp>
#include <tessera/checkpoint/hyperslabs.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

constexpr std::string_view parameters_group = "parameters/";

/// One array as it is written.
struct ExportedArray : ExportedParameter {
  ArrayFacts source;
};

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
  out.write(reinterpret_cast<const char*>(values.data()), all * static_cast<Size>(sizeof(T)));
}

void write_arrays(std::ostream& out, const Hdf5File& file, const std::string& checkpoint,
                  const std::vector<ExportedArray>& arrays) {
  std::vector<ArrayFacts> facts;
  for (const ExportedArray& array : arrays)
    facts.push_back({array.name, array.shape, array.source.type});
  out << safetensors_header(facts);
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
    if (facts.name.starts_with(parameters_group))
      arrays.push_back(
          {exported_parameter(facts.name.substr(parameters_group.size()), facts.shape, names),
           facts});
  write_whole(to, [&](std::ostream& out) { write_arrays(out, file, checkpoint, arrays); });
  return arrays.size();
}

}  // namespace tessera
