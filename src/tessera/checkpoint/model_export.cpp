// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/half_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/huggingface.hpp>
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

/// One parameter as it is written.
struct WrittenParameter : ExportedParameter {
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

/// Returns the values of a parameter in the order of its arrays, one after another.
template <class T>
std::vector<T> arrays_of(const ExportedParameter& there, const Shape& shape,
                         const std::vector<T>& values) {
  if (there.names.size() == 1 && !there.layout.transposed && !there.layout.stacked) return values;
  const Size elements = num_elements(there.shape);
  std::vector<T> arrays(values.size());
  for (Size i = 0; i < std::ssize(values); ++i) {
    const auto [array, element] = there.layout.place_of(shape, i);
    arrays[array * elements + element] = values[i];
  }
  return arrays;
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
                  static_cast<double>(value), name_of(dtype_of<E>()));
    return result;
  });
  out.write(reinterpret_cast<const char*>(converted.data()),
            std::ssize(converted) * static_cast<Size>(sizeof(E)));
}

void write_parameter(std::ostream& out, const CheckpointFile& file,
                     const WrittenParameter& parameter) {
  file.with_values(parameter.source, [&]<class T>(const std::vector<T>& values) {
    const Shape& shape = file.tensors().at(parameter.source).array.shape;
    const std::vector<T> there = arrays_of(parameter, shape, values);
    const std::string where = file.file().path() + ": " + parameter.source;
    with_compute_type(parameter.type, [&]<class E>(E) { write_converted<E>(out, where, there); });
  });
}

}  // namespace

ExportedParameter exported_parameter(const std::string& path, const Shape& shape,
                                     ExportNames names) {
  if (names == ExportNames::tessera) return {{path}, shape};
  ExportedParameter there{{}, shape};
  const std::size_t slash = path.rfind('/');
  std::string layer = path.substr(0, slash), name = path.substr(slash + 1);
  for (const PytorchName& row : pytorch_names)
    if (row.name == name) {
      there.layout.transposed = row.transposed && shape.size() == 2;
      name = row.there;
      break;
    }
  name = layer + "." + name;
  std::replace(name.begin(), name.end(), '/', '.');
  there.names.push_back(name);
  if (there.layout.transposed) std::swap(there.shape[0], there.shape[1]);
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
  nlohmann::json config;
  const huggingface::ModelClass* its_class = nullptr;
  if (names == ExportNames::huggingface)
    its_class = &huggingface::class_for(file.state().config, config);
  std::vector<WrittenParameter> parameters;
  std::vector<ArrayFacts> facts;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!is_selected(name)) continue;
    const Shape& shape = tensor.array.shape;
    const ExportedParameter there =
        its_class ? huggingface::exported_parameter(*its_class, config, name, shape)
                  : exported_parameter(name, shape, names);
    parameters.push_back({there, name, type.value_or(tensor.type)});
    for (const std::string& one : there.names)
      facts.push_back({one, there.shape, parameters.back().type});
  }
  if (facts.empty())
    throw ConfigError("--select", join(selected), "must be beginnings of names in {}", checkpoint);
  const std::filesystem::path folder = std::filesystem::path(to).parent_path();
  std::error_code found_later;
  if (its_class) std::filesystem::create_directories(folder, found_later);
  write_whole(to, [&](std::ostream& out) {
    out << safetensors_header(facts);
    for (const WrittenParameter& parameter : parameters) write_parameter(out, file, parameter);
  });
  if (its_class) {
    config["torch_dtype"] = name_of(facts.front().type);
    write_json(folder / "config.json", config);
  }
  return facts.size();
}

}  // namespace tessera
