// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/half_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

/// The name of a parameter in PyTorch. `transposed`: a matrix is transposed.
struct PytorchName {
  std::string_view name, there;
  bool transposed = false;
};
constexpr std::array<PytorchName, 4> pytorch_names{
    {{"kernel", "weight", true}, {"scale", "weight"}, {"table", "weight"}, {"bias", "bias"}}};

/// One array as it is written.
struct ExportedArray : ExportedParameter {
  std::string source;  ///< name in the checkpoint
  DType type;
};

/// Returns the value, or the one of the two neighbouring floats that is odd in its last bit.
/// Rounding that to fewer bits is the same as rounding the value (Boldo and Melquiond 2008).
float rounded_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const bool is_odd = (std::bit_cast<std::uint32_t>(nearest) & 1U) != 0;
  if (is_odd || static_cast<double>(nearest) == value) return nearest;
  return std::nextafter(nearest, value > nearest ? INFINITY : -INFINITY);
}

/// Returns the transpose of a matrix.
template <class T>
std::vector<T> transposed(const std::vector<T>& values, const Shape& shape) {
  std::vector<T> other(values.size());
  for (Size i = 0; i < shape[0]; ++i)
    for (Size j = 0; j < shape[1]; ++j) other[j * shape[0] + i] = values[i * shape[1] + j];
  return other;
}

/// Converts the values to E and writes them. `where` begins messages.
template <class E, class T>
void write_converted(std::ostream& out, const std::string& where, const std::vector<T>& values) {
  std::vector<E> converted(values.size());
  std::transform(values.begin(), values.end(), converted.begin(), [&](T value) {
    E result;
    if constexpr (is_half_v<E>)
      result = rounded_to_odd(value);
    else
      result = static_cast<E>(value);
    if (!std::isfinite(static_cast<double>(result)))
      throw Error(ExitCode::usage, "{}: has the value {}, which is beyond the range of {}", where,
                  value, name_of(dtype_of<E>()));
    return result;
  });
  out.write(reinterpret_cast<const char*>(converted.data()),
            std::ssize(converted) * static_cast<Size>(sizeof(E)));
}

void write_array(std::ostream& out, const CheckpointFile& file, const ExportedArray& array) {
  file.with_values(array.source, [&]<class T>(const std::vector<T>& values) {
    const Shape& shape = file.tensors().at(array.source).array.shape;
    const std::vector<T> there = array.transposed ? transposed(values, shape) : values;
    const std::string where = file.file().path() + ": " + array.source;
    with_compute_type(array.type, [&]<class E>(E) { write_converted<E>(out, where, there); });
  });
}

}  // namespace

ExportedParameter exported_parameter(const std::string& path, const Shape& shape,
                                     ExportNames names) {
  ExportedParameter there{path, shape};
  if (names == ExportNames::tessera) return there;
  const std::size_t slash = path.rfind('/');
  std::string layer = path.substr(0, slash), name = path.substr(slash + 1);
  for (const PytorchName& row : pytorch_names)
    if (row.name == name) {
      there.transposed = row.transposed && shape.size() == 2;
      name = row.there;
      break;
    }
  there.name = layer + "." + name;
  std::replace(there.name.begin(), there.name.end(), '/', '.');
  if (there.transposed) std::swap(there.shape[0], there.shape[1]);
  return there;
}

std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportNames names, std::optional<DType> type,
                              const std::vector<std::string>& selected) {
  const CheckpointFile file(checkpoint);
  const auto is_selected = [&](const std::string& name) {
    if (selected.empty()) return !is_moment(name);
    return std::any_of(selected.begin(), selected.end(),
                       [&](const std::string& begin) { return name.starts_with(begin); });
  };
  std::vector<ExportedArray> arrays;
  std::vector<ArrayFacts> facts;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!is_selected(name)) continue;
    const ExportedParameter there = exported_parameter(name, tensor.array.shape, names);
    arrays.push_back({there, name, type.value_or(tensor.type)});
    facts.push_back({there.name, there.shape, arrays.back().type});
  }
  if (arrays.empty())
    throw ConfigError("--select", join(selected), "must be beginnings of names in {}", checkpoint);
  write_whole(to, [&](std::ostream& out) {
    out << safetensors_header(facts);
    for (const ExportedArray& array : arrays) write_array(out, file, array);
  });
  return arrays.size();
}

}  // namespace tessera
