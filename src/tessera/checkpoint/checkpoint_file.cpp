// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>

namespace tessera {
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

// JSON has no NaN and no infinity: those become "nan" and "inf".
Json json_of(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
Json json_of(Size value) { return value; }
template <std::size_t n>
Json json_of(const std::array<double, n>& row) {
  Json list = Json::array();
  for (const double value : row) list.push_back(json_of(value));
  return list;
}
template <class T>
Json json_of(const std::vector<T>& rows) {
  Json list = Json::array();
  for (const T& row : rows) list.push_back(json_of(row));
  return list;
}
/// A text that is JSON itself is stored as what it means.
Json json_of(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_structured() ? value : Json(text);
}

void take(const Json& json, Size& value) { value = json.get<Size>(); }
void take(const Json& json, double& value) {
  value =
      json.is_string() ? std::strtod(json.get<std::string>().c_str(), nullptr) : json.get<double>();
}
template <std::size_t n>
void take(const Json& json, std::array<double, n>& row) {
  for (std::size_t i = 0; i < n; ++i) take(json.at(i), row[i]);
}
template <class T>
void take(const Json& json, std::vector<T>& rows) {
  rows.clear();
  for (const Json& row : json) take(row, rows.emplace_back());
}
void take(const Json& json, std::string& text) {
  text = json.is_string() ? json.get<std::string>() : json.dump();
}

/// Calls f(key, member) for each member of the state.
template <class State, class F>
void for_each_member(State& state, const F& f) {
  f("step", state.step);
  f("loss_scale", state.loss_scale.value);
  f("loss_scale_good_steps", state.loss_scale.good_steps);
  f("skipped_steps", state.loss_scale.skipped_steps);
  f("epoch_losses", state.epoch_losses);
  f("losses_so_far", state.losses_so_far);
  f("layer_losses_so_far", state.layer_losses_so_far);
  f("validations", state.validations);
  f("validation_parts", state.validation_parts);
  f("routing_so_far", state.routing_so_far);
  f("config", state.config);
  f("provenance", state.provenance);
  f("data", state.data);
  f("training", state.training);
}

/// Returns the document under `state_key`. Throws Error (usage) if there is none that fits.
Json document_of(const SafetensorsFile& file, const std::string& path) {
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
  Json document{{"format_version", checkpoint_version},
                // Only for readers: both follow from the losses.
                {"epoch", state.epoch()},
                {"batch", state.batch()},
                {"tensors", Json::object()}};
  for_each_member(state,
                  [&](const char* key, const auto& member) { document[key] = json_of(member); });
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
  const Json document = document_of(file_, path);
  try {
    for_each_member(state_, [&](const char* key, auto& member) { take(document.at(key), member); });
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
