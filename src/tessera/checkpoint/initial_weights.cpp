// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/half_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/checkpoint/same_contents.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

constexpr const char* weights_key = "checkpoint.init_from";

using Arrays = std::map<std::string, SafetensorsArray>;

/// Returns the parameters of a model as they are in a file with these names.
std::vector<ExportedParameter> parameters_of(const ModelSpec& model, ExportNames names) {
  std::vector<ExportedParameter> parameters;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters)
      parameters.push_back(exported_parameter(path_of(layer, parameter), parameter.shape, names));
  return parameters;
}

/// Returns the parameters of a model with the names of which the file has more.
std::vector<ExportedParameter> parameters_in(const Arrays& arrays, const ModelSpec& model) {
  const auto found = [&](ExportNames names) {
    return std::ranges::count_if(parameters_of(model, names), [&](const ExportedParameter& one) {
      return arrays.contains(one.name);
    });
  };
  const bool is_pytorch = found(ExportNames::pytorch) > found(ExportNames::tessera);
  return parameters_of(model, is_pytorch ? ExportNames::pytorch : ExportNames::tessera);
}

/// Throws ConfigError for arrays that do not fit, first those of the model and then the other ones
/// of the file.
void check_arrays_fit(const std::string& path, Arrays arrays,
                      const std::vector<ExportedParameter>& wanted) {
  std::vector<std::string> found;
  for (const ExportedParameter& one : wanted) {
    const auto stored = arrays.extract(one.name);
    if (stored.empty())
      found.push_back(one.name + " is missing");
    else if (stored.mapped().shape != one.shape)
      found.push_back(fmt::format("{} has shape {}, not {}", one.name,
                                  excerpt(to_string(stored.mapped().shape)), to_string(one.shape)));
    else if (!stored.mapped().dtype())
      found.push_back(one.name + " has no floating-point numbers of 16 to 64 bits");
  }
  for (const auto& [name, array] : arrays)
    found.push_back(excerpt(one_line(name)) + " is not in the model");
  if (found.empty()) return;
  constexpr std::size_t most = 800;  // letters
  std::string list;
  std::size_t listed = 0;
  for (; listed < found.size() && list.size() < most; ++listed)
    list += (listed > 0 ? "; " : "") + found[listed];
  if (listed < found.size()) list += fmt::format("; and {} more", found.size() - listed);
  throw ConfigError(weights_key, path, "does not fit the model: {}", list);
}

/// Returns where the file has the parameters of a model. Throws ConfigError if it has other ones.
std::vector<TensorSource> sources_in(const SafetensorsFile& file, const ModelSpec& model) {
  Arrays arrays = file.arrays();
  std::optional<CheckpointFile> checkpoint;
  if (CheckpointFile::is_checkpoint(file)) {
    checkpoint.emplace(file.path());
    std::erase_if(arrays, [](const auto& array) { return is_moment(array.first); });
  }
  const std::vector<ExportedParameter> parameters = parameters_in(arrays, model);
  check_arrays_fit(file.path(), arrays, parameters);
  std::vector<TensorSource> sources;
  for (const ExportedParameter& one : parameters) {
    TensorSource& source = sources.emplace_back(TensorSource{arrays.at(one.name), one.transposed});
    if (checkpoint) source.checksum = checkpoint->tensors().at(one.name).checksum;
  }
  return sources;
}

template <class T>
void check_parameters_finite(const std::string& path, const Communicator& ranks,
                             const Engine<T>& engine) {
  for (const auto& local :
       local_tensors(engine.plan(), ranks.rank(), engine, TensorRole::parameter)) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), local.values);
    for (Size i = 0; i < local.kept.count; ++i)
      if (!std::isfinite(host(i)))
        throw ConfigError(weights_key, path, "{} has a value that is not finite in {}",
                          local.slot.path, name_of(dtype_of<StateOf<T>>()));
  }
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
  collectively(ranks, [&] { check_parameters_finite(path, ranks, engine); });
  engine.resume(0, engine.loss_scale().state(), {});  // renews copies of the parameters
  return bytes;
}

#define TESSERA_INSTANTIATE(T) \
  template Size read_initial_weights(const std::string&, const Communicator&, Engine<T>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
