// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <tessera/base/half_float.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {
namespace {

constexpr const char* weights_key = "checkpoint.init_from";

/// Returns the parameters of a model as they are in a file with these names.
std::vector<ExportedParameter> parameters_of(const ModelSpec& model, ExportNames names) {
  std::vector<ExportedParameter> parameters;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters)
      parameters.push_back(exported_parameter(path_of(layer, parameter), parameter.shape, names));
  return parameters;
}

/// Returns where the file has the parameters of a model, with either names. Throws ConfigError if
/// it has other arrays.
std::vector<TensorSource> sources_in(const SafetensorsFile& file, const ModelSpec& model) {
  std::map<std::string, SafetensorsArray> arrays = file.arrays();
  std::optional<CheckpointFile> checkpoint;
  if (CheckpointFile::is_checkpoint(file)) {
    checkpoint.emplace(file.path());
    std::erase_if(arrays, [](const auto& array) { return is_moment(array.first); });
  }
  std::vector<ExportedParameter> parameters = parameters_of(model, ExportNames::pytorch);
  if (std::ranges::none_of(parameters, [&](const auto& one) { return arrays.contains(one.name); }))
    parameters = parameters_of(model, ExportNames::tessera);
  ArrayTexts wanted, found;
  for (const ExportedParameter& one : parameters)
    wanted[one.name] = "float " + to_string(one.shape);
  for (const auto& [name, array] : arrays)
    found[name] = (array.dtype() ? "float " : array.type + " ") + to_string(array.shape);
  if (const std::string other = misfits(wanted, found); !other.empty())
    throw ConfigError(weights_key, file.path(), "does not fit the model: {}", other);
  std::vector<TensorSource> sources;
  for (const ExportedParameter& one : parameters) {
    TensorSource& source = sources.emplace_back(TensorSource{arrays.at(one.name), one.transposed});
    if (checkpoint) source.checksum = checkpoint->tensors().at(one.name).checksum;
  }
  return sources;
}

}  // namespace

void check_initial_weights(const std::string& path, const Communicator& ranks,
                           const ModelSpec& model) {
  collectively(ranks, [&] {
    if (const std::string problem = why_unreadable(path); !problem.empty())
      throw ConfigError(weights_key, path, problem);
    sources_in(SafetensorsFile(path), model);
  });
  check_same_contents(path, ranks);
}

template <class T>
Size read_initial_weights(const std::string& path, const Communicator& ranks, Engine<T>& engine) {
  std::optional<SafetensorsFile> file;
  const std::vector<TensorSource> sources = collectively(
      ranks, [&] { return sources_in(file.emplace(path), engine.plan().input.model); });
  const Size bytes = read_tensors(*file, sources, ranks, engine);
  engine.resume(0, engine.loss_scale().state(), {});  // renews copies of the parameters
  return bytes;
}

#define TESSERA_INSTANTIATE(T) \
  template Size read_initial_weights(const std::string&, const Communicator&, Engine<T>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
