// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LossScaleState, value, good_steps, skipped_steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingState, step, loss_scale, epoch_losses, losses_so_far,
                                   layer_losses_so_far, validations, validation_parts,
                                   routing_so_far, config, provenance, data, training)

namespace {

using Json = nlohmann::json;

constexpr Size checkpoint_version = 4;  // 1 to 3 were HDF5 files
constexpr Size page = 4096;             // tensors begin at a page, so that no write shares one
                                        // with the header
// Keys of `__metadata__`: the state, and the checksum of the header in which this checksum is 0.
constexpr const char* state_key = "tessera";
constexpr const char* header_sum_key = "tessera_checksum";

constexpr std::size_t sum_digits = 16;
std::string digits_of(std::uint64_t sum) { return fmt::format("{:016x}", sum); }

std::uint64_t sum_in(const std::string& digits) {
  std::uint64_t sum = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), sum, 16);
  return sum;
}

/// Returns the header's checksum. `header`: without its length.
std::uint64_t sum_of_header(std::string header) {
  // Quotes inside of texts are escaped, so these are the digits.
  const std::size_t place = header.find(fmt::format("\"{}\":\"", header_sum_key));
  const std::size_t begin = place + std::string_view(header_sum_key).size() + 4;
  if (place == std::string::npos || begin + sum_digits > header.size()) return 0;
  header.replace(begin, sum_digits, sum_digits, '0');
  return hash_of_text(header);
}

/// Members that are JSON themselves. The document has them as what they mean.
constexpr std::array<const char*, 3> json_texts{"config", "provenance", "data"};

/// JSON has no NaN and no infinity: those become the texts "nan", "inf" and "-inf".
void nonfinite_to_text(Json& value) {
  if (value.is_structured())
    for (Json& part : value) nonfinite_to_text(part);
  else if (value.is_number_float() && !std::isfinite(value.get<double>()))
    value = fmt::format("{}", value.get<double>());
}

void text_to_nonfinite(Json& value) {
  if (value.is_array())
    for (Json& part : value) text_to_nonfinite(part);
  else if (value.is_string())
    value = std::strtod(value.get<std::string>().c_str(), nullptr);
}

Json document_of(const TrainingState& state) {
  Json document = state;
  nonfinite_to_text(document);
  for (const char* key : json_texts)
    if (Json value = Json::parse(document[key].get<std::string>(), nullptr, false);
        value.is_structured())
      document[key] = std::move(value);
  return document;
}

TrainingState state_in(Json document) {
  for (const char* key : json_texts)
    if (Json& value = document.at(key); value.is_structured()) value = value.dump();
  for (Json& member : document)
    if (member.is_array()) text_to_nonfinite(member);
  return document.get<TrainingState>();
}

/// Returns the document under `state_key`. Throws Error (usage) if there is none that fits.
Json document_in(const SafetensorsFile& file, const std::string& path) {
  if (!CheckpointFile::is_checkpoint(file))
    throw Error(ExitCode::usage, path + ": is not a Tessera checkpoint");
  if (const auto sum = file.metadata().find(header_sum_key);
      sum == file.metadata().end() || sum_in(sum->second) != sum_of_header(file.header()))
    throw Error(ExitCode::usage, path + ": is damaged: the checksum of its header differs");
  Json document = Json::parse(file.metadata().at(state_key), nullptr, false);
  const Size version = document.is_object() ? document.value("format_version", Size{0}) : 0;
  if (version != checkpoint_version)
    throw Error(ExitCode::usage, "{}: format_version: must be {}, not {}", path, checkpoint_version,
                version);
  return document;
}

/// Reads a tensor in pieces and checks its checksum. Returns its bytes.
template <class T>
Size check_elements(const CheckpointFile& file, const std::string& name,
                    const StoredTensor& tensor) {
  constexpr Size elements = checkpoint_piece / static_cast<Size>(sizeof(T));
  const Size all = num_elements(tensor.array.shape);
  std::vector<T> values(std::min(all, elements));
  std::uint64_t sum = 0;
  for (Size first = 0; first < all; first += elements) {
    const Size count = std::min(elements, all - first);
    file.read(tensor, first, count, values.data());
    sum += hash_of_run(values.data(), count, first);
  }
  file.check_sum(name, sum);
  return tensor.array.bytes.count;
}

}  // namespace

std::string checkpoint_header(const std::vector<CheckpointTensor>& tensors,
                              const TrainingState& state, const std::vector<std::uint64_t>& sums) {
  Json document = document_of(state);
  document["format_version"] = checkpoint_version;
  document["epoch"] = state.epoch();  // this and the next one are for readers: losses tell both
  document["batch"] = state.batch();
  document["tensors"] = Json::object();
  std::vector<ArrayFacts> arrays;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    arrays.push_back({tensors[t].name, tensors[t].shape, tensors[t].type});
    document["tensors"][tensors[t].name] = {{"checksum", digits_of(sums[t])},
                                            {"axes", join(tensors[t].logical_axes)}};
  }
  std::string header = safetensors_header(
      arrays,
      {{state_key, document.dump(-1, ' ', false, Json::error_handler_t::replace)},
       {header_sum_key, digits_of(0)}},
      page);
  constexpr std::size_t length = 8;  // bytes of the header's length
  const std::string key = fmt::format("\"{}\":\"", header_sum_key);
  const std::string sum = digits_of(sum_of_header(header.substr(length)));
  return header.replace(header.find(key) + key.size(), sum_digits, sum);
}

std::vector<Size> places_of(const std::vector<CheckpointTensor>& tensors, Size header_bytes) {
  std::vector<Size> places{header_bytes};
  for (const CheckpointTensor& tensor : tensors)
    places.push_back(places.back() + num_elements(tensor.shape) * size_of(tensor.type));
  return places;
}

bool CheckpointFile::is_checkpoint(const SafetensorsFile& file) {
  return file.metadata().contains(state_key);
}

CheckpointFile::CheckpointFile(const std::string& path) : path_(path), file_(path) {
  const Json document = document_in(file_, path);
  try {
    state_ = state_in(document);
    for (const auto& [name, facts] : document.at("tensors").items()) {
      const SafetensorsArray& array = file_.arrays().at(name);
      tensors_[name] = {array, array.dtype().value(), sum_in(facts.at("checksum")),
                        facts.at("axes")};
    }
  } catch (const std::exception& error) {
    throw Error(ExitCode::usage, "{}: its training state cannot be read: {}", path,
                one_line(error.what()));
  }
}

void CheckpointFile::check_sum(const std::string& name, std::uint64_t sum) const {
  if (tensors_.at(name).checksum != sum)
    throw Error(ExitCode::usage, path_ + ": " + name + ": is damaged: its checksum differs");
}

bool is_moment(const std::string& name) { return name.starts_with("moment"); }

void check_tensors(const CheckpointFile& file, const std::string& path,
                   const std::vector<CheckpointTensor>& wanted) {
  for (const CheckpointTensor& tensor : wanted) {
    const auto found = file.tensors().find(tensor.name);
    if (found == file.tensors().end())
      throw Error(ExitCode::usage, "{}: {}: is missing", path, tensor.name);
    const StoredTensor& stored = found->second;
    if (stored.array.shape != tensor.shape)
      throw Error(ExitCode::usage, "{}: {}: has shape {}, but shape {} in this run", path,
                  tensor.name, to_string(stored.array.shape), to_string(tensor.shape));
    if (stored.type != tensor.type)
      throw Error(ExitCode::usage, "{}: {}: has element type {}, but type {} in this run", path,
                  tensor.name, name_of(stored.type), name_of(tensor.type));
  }
}

TrainingState read_state(const std::string& path) { return CheckpointFile(path).state(); }

Size verify_checkpoint(const std::string& path) {
  const CheckpointFile file(path);
  Size bytes = 0;
  for (const auto& [name, tensor] : file.tensors())
    bytes += tensor.type == DType::float64 ? check_elements<double>(file, name, tensor)
                                           : check_elements<float>(file, name, tensor);
  return bytes;
}

}  // namespace tessera
