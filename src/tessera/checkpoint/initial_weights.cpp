// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/half_float.hpp>
#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/huggingface.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/checkpoint/tensors.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr const char* weights_key = "checkpoint.init_from";

/// Returns the file that names all others: the index of a directory, or the only file.
std::string main_file(const std::string& path) {
  std::string file = path;
  std::error_code unused;
  if (std::filesystem::is_directory(path, unused)) {
    file = path + "/model.safetensors.index.json";
    if (!std::filesystem::exists(file, unused)) file = path + "/model.safetensors";
  }
  if (const std::string problem = why_unreadable(file); !problem.empty())
    throw ConfigError(weights_key, file, problem);
  return file;
}

/// Returns the JSON object in a file.
Json object_in(const std::filesystem::path& path) {
  constexpr Size most_bytes = 64 << 20;
  const Json object = Json::parse(read_text(path, most_bytes), nullptr, false);
  if (!object.is_object()) throw ConfigError(weights_key, path.string(), "must be a JSON object");
  return object;
}

/// Returns the safetensors files of a main_file().
std::vector<std::string> files_of(const std::string& file) {
  if (!file.ends_with(".json")) return {file};
  const Json names = object_in(file).value("weight_map", Json());
  std::set<std::string> paths;
  for (const Json& name : names)
    if (name.is_string())
      paths.insert((std::filesystem::path(file).parent_path() / name.get<std::string>()).string());
  if (paths.empty()) throw ConfigError(weights_key, file, "must name files in its weight_map");
  return {paths.begin(), paths.end()};
}

}  // namespace

/// The arrays of several files, open for reading.
struct WeightFiles {
  std::deque<SafetensorsFile> files;
  std::map<std::string, SourceArray> arrays;

  explicit WeightFiles(const std::vector<std::string>& paths) {
    for (const std::string& path : paths)
      for (const auto& [name, array] : files.emplace_back(path).arrays())
        if (!arrays.try_emplace(name, SourceArray{&files.back(), array}).second)
          throw ConfigError(weights_key, path, "has {}, which another file also has",
                            excerpt(one_line(name)));
  }
  const std::string& path() const { return files.front().path(); }
};

namespace {

/// Returns the parameters of a model as they are in files with names that `make` gives them.
template <class Make>
std::vector<ExportedParameter> parameters_of(const ModelSpec& model, const Make& make) {
  std::vector<ExportedParameter> parameters;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters)
      parameters.push_back(make(path_of(layer, parameter), parameter.shape));
  return parameters;
}

/// The same for the names of a class of transformers. Renames arrays that lack a part of it.
std::vector<ExportedParameter> huggingface_parameters(WeightFiles& from, const Config& config,
                                                      const ModelSpec& model) {
  const auto beside = std::filesystem::path(from.path()).parent_path() / "config.json";
  std::error_code unused;
  if (!std::filesystem::exists(beside, unused))
    throw ConfigError(weights_key, from.path(),
                      "has no parameter of the model; names of Hugging Face's transformers need a "
                      "config.json beside the file");
  constexpr const char* head = "lm_head.weight";
  const Json theirs = object_in(beside);
  const huggingface::ModelClass& its_class = huggingface::class_of(theirs, beside.string());
  const auto other = huggingface::differences(its_class, theirs, config_as_json(config));
  if (!other.empty()) throw ConfigError(weights_key, from.path(), "needs {}", join(other, "; "));
  for (const auto& [name, array] : std::exchange(from.arrays, {}))
    if (const std::string full = huggingface::full_name(its_class, name); !full.empty())
      from.arrays.emplace(full, array);
  bool has_head = false;
  const auto parameters = parameters_of(model, [&](const std::string& path, const Shape& shape) {
    ExportedParameter there = huggingface::exported_parameter(its_class, theirs, path, shape);
    has_head = has_head || there.names.front() == head;
    return there;
  });
  if (!has_head) from.arrays.erase(head);  // a copy of tied embeddings
  return parameters;
}

/// Returns where files have the parameters of a model, with our names, those of PyTorch, or those
/// of transformers. Throws ConfigError if they have other arrays.
std::vector<TensorSource> sources_in(WeightFiles& from, const Config& config,
                                     const ModelSpec& model) {
  std::optional<CheckpointFile> checkpoint;
  if (CheckpointFile::is_checkpoint(from.files.front())) {
    checkpoint.emplace(from.path());
    std::erase_if(from.arrays, [](const auto& array) { return is_moment(array.first); });
  }
  std::vector<ExportedParameter> parameters;
  const auto fits = [&](const ExportedParameter& one) {
    return from.arrays.contains(one.names.front());
  };
  for (const ExportNames names : {ExportNames::pytorch, ExportNames::tessera}) {
    parameters = parameters_of(model, [&](const std::string& path, const Shape& shape) {
      return exported_parameter(path, shape, names);
    });
    if (std::ranges::any_of(parameters, fits)) break;
  }
  if (std::ranges::none_of(parameters, fits))
    parameters = huggingface_parameters(from, config, model);
  ArrayTexts wanted, found;
  for (const ExportedParameter& one : parameters)
    for (const std::string& name : one.names) wanted[name] = "float " + to_string(one.shape);
  for (const auto& [name, source] : from.arrays)
    found[name] =
        (source.array.dtype() ? "float " : source.array.type + " ") + to_string(source.array.shape);
  if (const std::string other = misfits(wanted, found); !other.empty())
    throw ConfigError(weights_key, from.path(), "does not fit the model: {}", other);
  std::vector<TensorSource> sources;
  for (const ExportedParameter& one : parameters) {
    TensorSource& source = sources.emplace_back(TensorSource{{}, one.layout});
    for (const std::string& name : one.names) {
      source.arrays.push_back(from.arrays.at(name));
      if (source.arrays.back().array.type != source.arrays.front().array.type)
        throw ConfigError(weights_key, from.path(), "{} and {} must have one type",
                          one.names.front(), name);
    }
    if (checkpoint) source.checksum = checkpoint->tensors().at(one.names.front()).checksum;
  }
  return sources;
}

}  // namespace

InitialWeights::InitialWeights(const std::string& path, const Communicator& ranks,
                               const Config& config) {
  const std::string file = collectively(ranks, [&] { return main_file(path); });
  check_same_contents(file, ranks);
  const auto paths = collectively(ranks, [&] {
    files_ = std::make_shared<WeightFiles>(files_of(file));
    sources_ = sources_in(*files_, config, make_model(config));
    return files_of(file);
  });
  for (const std::string& one : paths)
    if (one != file) check_same_contents(one, ranks);
}

template <class T>
Size InitialWeights::read(const Communicator& ranks, Engine<T>& engine) const {
  const Size bytes = read_tensors(sources_, ranks, engine);
  engine.resume(0, engine.loss_scale().state(), {});  // renews copies of the parameters
  return bytes;
}

#define TESSERA_INSTANTIATE(T) \
  template Size InitialWeights::read(const Communicator&, Engine<T>&) const;
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
