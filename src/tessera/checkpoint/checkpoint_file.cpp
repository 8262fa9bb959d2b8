// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/text.hpp>
#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/checksums.hpp>

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LossScaleState, value, good_steps, skipped_steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingState, step, loss_scale, epoch_losses, losses_so_far,
                                   layer_losses_so_far, validations, validation_parts, config,
                                   provenance, data, training)

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
std::uint64_t sum_in(const std::string& digits) { return std::stoull(digits, nullptr, 16); }

/// Returns where a header has the digits of its checksum. Quotes inside of texts are escaped, so no
/// other place looks like this one.
std::size_t place_of_sum(const std::string& header) {
  const std::string key = fmt::format("\"{}\":\"", header_sum_key);
  return header.find(key) + key.size();
}

/// Returns true if the header has the checksum that it names.
bool is_intact(const SafetensorsFile& file) {
  const auto named = file.metadata().find(header_sum_key);
  if (named == file.metadata().end() || named->second.size() != sum_digits) return false;
  std::string header = file.header();
  header.replace(place_of_sum(header), sum_digits, digits_of(0));
  return named->second == digits_of(hash_of_text(header));
}

/// nlohmann's library writes numbers that are not finite as null.
void null_to_nan(Json& value) {
  if (value.is_array())
    for (Json& part : value) null_to_nan(part);
  else if (value.is_null())
    value = NAN;
}

/// Returns the document under `state_key`. Throws Error (usage) if there is none that fits.
Json document_in(const SafetensorsFile& file, const std::string& path) {
  if (!CheckpointFile::is_checkpoint(file))
    throw Error(ExitCode::usage, path + ": is not a Tessera checkpoint");
  if (!is_intact(file))
    throw Error(ExitCode::usage, path + ": is damaged: the checksum of its header differs");
  Json document = Json::parse(file.metadata().at(state_key), nullptr, false);
  const Size version = document.is_object() ? document.value("format_version", Size{0}) : 0;
  if (version != checkpoint_version)
    throw Error(ExitCode::usage, "{}: format_version: must be {}, not {}", path, checkpoint_version,
                version);
  return document;
}

}  // namespace

std::string checkpoint_header(const std::vector<CheckpointTensor>& tensors,
                              const TrainingState& state, const std::vector<std::uint64_t>& sums) {
  Json document = state;
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
  constexpr std::size_t length = 8;  // bytes of the header's length, which stand before it
  const std::string sum = digits_of(hash_of_text(header.substr(length)));
  return header.replace(place_of_sum(header), sum_digits, sum);
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

CheckpointFile::CheckpointFile(const std::string& path) : file_(path) {
  Json document = document_in(file_, path);
  try {
    for (Json& member : document)
      if (member.is_array()) null_to_nan(member);
    state_ = document.get<TrainingState>();
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

template <class T>
std::vector<T> CheckpointFile::values(const std::string& name) const {
  const StoredTensor& tensor = tensors_.at(name);
  std::vector<T> values(static_cast<std::size_t>(num_elements(tensor.array.shape)));
  file_.read(tensor.array, 0, std::ssize(values), values.data());
  if (tensor.checksum != hash_of_run(values.data(), std::ssize(values), 0))
    throw Error(ExitCode::usage, "{}: {}: is damaged: its checksum differs", file_.path(), name);
  return values;
}
#define TESSERA_INSTANTIATE(T) \
  template std::vector<T> CheckpointFile::values(const std::string&) const;
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

bool is_moment(const std::string& name) { return name.starts_with("moment"); }

TrainingState read_state(const std::string& path) { return CheckpointFile(path).state(); }

std::string misfits(const ArrayTexts& wanted, const ArrayTexts& found) {
  std::vector<std::string> phrases;
  for (const auto& [name, text] : wanted) {
    const auto there = found.find(name);
    if (there == found.end())
      phrases.push_back(name + " is missing");
    else if (there->second != text)
      phrases.push_back(fmt::format("{} is {}, not {}", name, excerpt(there->second), text));
  }
  for (const auto& [name, text] : found)
    if (!wanted.contains(name)) phrases.push_back(excerpt(one_line(name)) + " is unknown");
  constexpr std::size_t most = 8;
  const std::size_t more = phrases.size() - std::min(phrases.size(), most);
  phrases.resize(phrases.size() - more);
  if (more > 0) phrases.push_back(fmt::format("and {} more", more));
  return join(phrases, "; ");
}

}  // namespace tessera
