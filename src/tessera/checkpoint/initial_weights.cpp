// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include <tessera/base/half_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/checkpoint/runs.hpp>
#include <tessera/checkpoint/same_contents.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

constexpr const char* weights_key = "checkpoint.init_from";

/// The arrays of a file by name.
struct StoredArray {
  Shape shape;
  std::optional<DType> type;  ///< unset: no floating-point numbers
};
using StoredArrays = std::map<std::string, StoredArray>;

void check_readable(const std::string& path) {
  if (const std::string problem = why_unreadable(path); !problem.empty())
    throw ConfigError(weights_key, path, problem);
}

/// Returns the arrays of a file; of a checkpoint, its parameters.
StoredArrays arrays_of(const SafetensorsFile& file) {
  const bool is_checkpoint = CheckpointFile::is_checkpoint(file);
  StoredArrays arrays;
  for (const auto& [name, array] : file.arrays())
    if (!is_checkpoint || !is_moment(name)) arrays[name] = {array.shape, array.dtype()};
  return arrays;
}

/// Returns the parameters of a model as they are in a file with these names.
std::vector<ExportedParameter> parameters_of(const ModelSpec& model, ExportNames names) {
  std::vector<ExportedParameter> parameters;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters)
      parameters.push_back(exported_parameter(path_of(layer, parameter), parameter.shape, names));
  return parameters;
}

/// Returns the names of which the file has more.
ExportNames naming_of(const StoredArrays& arrays, const ModelSpec& model) {
  const auto found = [&](ExportNames names) {
    Size count = 0;
    for (const ExportedParameter& one : parameters_of(model, names))
      count += arrays.contains(one.name) ? 1 : 0;
    return count;
  };
  return found(ExportNames::pytorch) > found(ExportNames::tessera) ? ExportNames::pytorch
                                                                   : ExportNames::tessera;
}

/// Returns what does not fit, first the arrays of the model and then the other ones of the file.
std::vector<std::string> differences(const StoredArrays& arrays, const ModelSpec& model) {
  std::vector<std::string> found;
  StoredArrays others = arrays;
  for (const ExportedParameter& one : parameters_of(model, naming_of(arrays, model))) {
    const auto stored = others.extract(one.name);
    if (stored.empty())
      found.push_back(one.name + " is missing");
    else if (stored.mapped().shape != one.shape)
      found.push_back(fmt::format("{} has shape {}, not {}", one.name,
                                  excerpt(to_string(stored.mapped().shape)), to_string(one.shape)));
    else if (!stored.mapped().type)
      found.push_back(one.name + " has no floating-point numbers of 16 to 64 bits");
  }
  for (const auto& [name, array] : others)
    found.push_back(excerpt(one_line(name)) + " is not in the model");
  return found;
}

void check_arrays_fit(const std::string& path, const StoredArrays& arrays, const ModelSpec& model) {
  const std::vector<std::string> found = differences(arrays, model);
  if (found.empty()) return;
  constexpr std::size_t most = 800;  // letters
  std::string list;
  std::size_t listed = 0;
  for (; listed < found.size() && list.size() < most; ++listed)
    list += (listed > 0 ? "; " : "") + found[listed];
  if (listed < found.size()) list += fmt::format("; and {} more", found.size() - listed);
  throw ConfigError(weights_key, path, "does not fit the model: {}", list);
}

/// Reads the elements `range` of a block of a parameter.
template <class F>
void read_block(const SafetensorsFile& file, const SafetensorsArray& array, const Shape& shape,
                bool transposed, const Piece& block, Range range, F* values) {
  if (!transposed)
    return for_each_run(shape, block, range, [&](Size first, Size place, Size count) {
      file.read(array, place, count, values + (first - range.begin));
    });
  // A column of the parameter is contiguous in the file.
  const Size columns = block.extent[1], first_row = range.begin / columns;
  std::vector<F> column((range.end() + columns - 1) / columns - first_row);
  for (Size j = 0; j < columns; ++j) {
    file.read(array, (block.offset[1] + j) * shape[0] + block.offset[0] + first_row,
              std::ssize(column), column.data());
    for (Size i = 0; i < std::ssize(column); ++i)
      if (const Size element = (first_row + i) * columns + j;
          element >= range.begin && element < range.end())
        values[element - range.begin] = column[i];
  }
}

template <class T>
Size read_safetensors(const SafetensorsFile& file, const StoredArrays& arrays,
                      const Communicator& ranks, const Engine<T>& engine) {
  const ModelSpec& model = engine.plan().input.model;
  const ExportNames names = naming_of(arrays, model);
  Size bytes = 0;
  for (const LocalTensor<StateOf<T>>& local :
       local_tensors(engine.plan(), ranks.rank(), engine, TensorRole::parameter)) {
    if (local.kept.count == 0) continue;
    const ExportedParameter there = exported_parameter(local.slot.path, local.slot.shape, names);
    const SafetensorsArray& array = file.arrays().at(there.name);
    with_compute_type(*array.dtype(), [&]<class F>(F) {
      std::vector<F> values(local.kept.count);
      read_block(file, array, local.slot.shape, there.transposed, local.piece, local.kept,
                 values.data());
      bytes += local.kept.count * static_cast<Size>(sizeof(F));
      const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), local.values);
      std::copy(values.begin(), values.end(), host.data());
      Kokkos::deep_copy(local.values, host);
    });
  }
  return bytes;
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
    check_readable(path);
    check_arrays_fit(path, arrays_of(SafetensorsFile(path)), model);
  });
  check_same_contents(path, ranks);
}

template <class T>
Size read_initial_weights(const std::string& path, const Communicator& ranks, Engine<T>& engine) {
  Size bytes = 0;
  std::optional<SafetensorsFile> file;
  const StoredArrays arrays = collectively(ranks, [&] {
    StoredArrays found = arrays_of(file.emplace(path));
    check_arrays_fit(path, found, engine.plan().input.model);
    return found;
  });
  const bool is_checkpoint = CheckpointFile::is_checkpoint(*file);
  check_same_everywhere(ranks, weights_key, is_checkpoint ? 1 : 0);
  if (is_checkpoint)
    bytes = read_parameters(path, ranks, engine, *arrays.begin()->second.type);
  else
    bytes = collectively(ranks, [&] { return read_safetensors(*file, arrays, ranks, engine); });
  collectively(ranks, [&] { check_parameters_finite(path, ranks, engine); });
  engine.resume(0, engine.loss_scale().state(), {});  // renews copies of the parameters
  return bytes;
}

#define TESSERA_INSTANTIATE(T) \
  template Size read_initial_weights(const std::string&, const Communicator&, Engine<T>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
