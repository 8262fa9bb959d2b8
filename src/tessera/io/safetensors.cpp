// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/safetensors.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "values are little-endian");

constexpr std::array<std::pair<DType, std::string_view>, 4> float_types{{{DType::float64, "F64"},
                                                                         {DType::float32, "F32"},
                                                                         {DType::bfloat16, "BF16"},
                                                                         {DType::float16, "F16"}}};
constexpr const char* metadata_key = "__metadata__";
constexpr Size length_bytes = 8;
constexpr Size longest_header = 100'000'000;  ///< the limit of the format's own library
constexpr std::string_view hdf5_signature("\x89HDF\r\n\x1a\n", length_bytes);

/// Returns the bytes of an array, or none if they exceed the range of Size.
std::optional<Size> bytes_of(const Shape& shape, Size element) {
  Size bytes = element;
  for (const Size extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

Size size_in(const nlohmann::json& value) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<Size>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest)
    throw std::runtime_error("has a size that is no natural number");
  return value.get<Size>();
}

/// Parses JSON without repeated names and of at most 3 levels.
nlohmann::json parsed(const std::string& text) {
  using Event = nlohmann::json::parse_event_t;
  std::array<std::set<std::string>, 4> names;
  return nlohmann::json::parse(text, [&](int depth, Event event, nlohmann::json& value) {
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (opens && depth >= 3) throw std::runtime_error("is nested too deeply");
    if (opens) names[depth + 1].clear();
    if (event == Event::key && !names[depth].insert(value.get<std::string>()).second)
      throw std::runtime_error("repeats a name");
    return true;
  });
}

SafetensorsArray array_in(const nlohmann::json& facts) {
  if (!facts.is_object() || facts.size() != 3 || !facts.contains("dtype") ||
      !facts.contains("shape") || !facts.contains("data_offsets") || !facts["dtype"].is_string() ||
      !facts["shape"].is_array() || !facts["data_offsets"].is_array() ||
      facts["data_offsets"].size() != 2)
    throw std::runtime_error("must have dtype, shape and two data_offsets");
  SafetensorsArray array{facts["dtype"].get<std::string>(), {}, {}};
  for (const nlohmann::json& extent : facts["shape"]) array.shape.push_back(size_in(extent));
  const Size begin = size_in(facts["data_offsets"][0]), end = size_in(facts["data_offsets"][1]);
  if (end < begin) throw std::runtime_error("ends before it begins");
  array.bytes = {begin, end - begin};
  if (const auto type = array.dtype(); type && bytes_of(array.shape, size_of(*type)) != end - begin)
    throw std::runtime_error("has other bytes than its shape needs");
  return array;
}

/// Entries that are no texts do not count.
std::map<std::string, std::string> texts_in(const nlohmann::json& object) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, text] : object.items())
    if (text.is_string()) texts.emplace(key, text.get<std::string>());
  return texts;
}

const std::string& regular_file(const std::string& path) {
  if (const std::string problem = why_unreadable(path); !problem.empty())
    throw Error(ExitCode::usage, "{}: {}", path, problem);
  return path;
}

}  // namespace

std::optional<DType> SafetensorsArray::dtype() const {
  for (const auto& [dtype, name] : float_types)
    if (name == type) return dtype;
  return std::nullopt;
}

std::string safetensors_header(const std::vector<ArrayFacts>& arrays,
                               const std::map<std::string, std::string>& metadata, Size alignment) {
  nlohmann::json header = {{metadata_key, metadata}};
  header[metadata_key]["format"] = "pt";
  Size begin = 0;
  for (const ArrayFacts& array : arrays) {
    const auto type = std::find_if(float_types.begin(), float_types.end(),
                                   [&](const auto& row) { return row.first == array.type; });
    const Size end = begin + num_elements(array.shape) * size_of(array.type);
    header[array.name] = {
        {"dtype", type->second}, {"shape", array.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const Size over = (length_bytes + std::ssize(text)) % alignment;
  text.append(over > 0 ? alignment - over : 0, ' ');
  std::string length;
  for (int i = 0; i < length_bytes; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(regular_file(path)), file_(path, O_RDONLY | O_NONBLOCK) {
  read_header(static_cast<Size>(std::filesystem::file_size(path)));
}

void SafetensorsFile::read_header(Size file_bytes) {
  std::uint64_t length = 0;
  std::string& text = header_;
  if (file_bytes >= length_bytes) file_.read(0, &length, length_bytes);
  if (std::memcmp(&length, hdf5_signature.data(), length_bytes) == 0)
    throw Error(ExitCode::usage,
                "{}: is an HDF5 file; if it is a checkpoint of Tessera 0.2, export it with "
                "`tessera checkpoint export` of that version",
                path_);
  if (length >= 2 && length <= static_cast<std::uint64_t>(file_bytes - length_bytes)) {
    text.resize(std::min<std::uint64_t>(length, longest_header));
    file_.read(length_bytes, text.data(), std::ssize(text));
  }
  if (!text.starts_with('{'))
    throw Error(ExitCode::usage, "{}: is not a safetensors file, or is cut off", path_);
  if (length > static_cast<std::uint64_t>(longest_header))
    throw Error(ExitCode::usage, "{}: its header is larger than {}", path_,
                human_bytes(longest_header));
  std::string name = "its header";
  try {
    const nlohmann::json header = parsed(text);
    for (const auto& [key, facts] : header.items()) {
      name = key;
      if (key == metadata_key)
        metadata_ = texts_in(facts);
      else
        arrays_.emplace(key, array_in(facts));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::usage, "{}: its header is no JSON object", path_);
  } catch (const std::runtime_error& error) {
    throw Error(ExitCode::usage, "{}: {}: {}", path_, excerpt(one_line(name)), error.what());
  }
  // The values have neither gaps nor overlaps.
  std::vector<std::pair<Size, Size>> places;
  for (const auto& [key, array] : arrays_)
    places.emplace_back(array.bytes.begin, array.bytes.end());
  std::sort(places.begin(), places.end());
  const Size first = length_bytes + static_cast<Size>(length);
  Size end = 0;
  for (const auto& [begins, ends] : places) {
    if (begins != end)
      throw Error(ExitCode::usage, "{}: its arrays overlap or leave a gap at byte {} of the values",
                  path_, std::min(begins, end));
    end = ends;
  }
  if (end != file_bytes - first)
    throw Error(ExitCode::usage, "{}: has {} bytes of values, but its header describes {}", path_,
                file_bytes - first, end);
  for (auto& [key, array] : arrays_) array.bytes.begin += first;
}

void SafetensorsFile::read(const SafetensorsArray& array, Size first, Size count,
                           void* values) const {
  const Size size = size_of(array.dtype().value());
  file_.read(array.bytes.begin + first * size, values, count * size);
}

}  // namespace tessera
