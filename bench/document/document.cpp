// SPDX-License-Identifier: Apache-2.0
#include "document/document.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

[[noreturn]] void fail_file(const std::string& file, const std::string& what) {
  throw Error(ExitCode::usage, file + ": " + what);
}

/// Returns the value as messages quote it, shortened to a line.
std::string shown(const Json& value) {
  constexpr std::size_t longest = 40;
  const std::string text = one_line(value.dump(-1, ' ', true, Json::error_handler_t::replace));
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

/// Returns the message of the JSON library without the name of the exception.
std::string reason_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return excerpt(one_line(end == std::string::npos ? text : text.substr(end + 2)), 200);
}

}  // namespace

StoredDocument::StoredDocument(Json value)
    : whole_(std::make_shared<const Json>(std::move(value))), value_(whole_.get()) {}

std::optional<StoredDocument> StoredDocument::read(const fs::path& file) {
  constexpr Size most_bytes = Size{1} << 30;
  std::error_code error;
  if (!fs::exists(file, error) && !error) return std::nullopt;
  return parse(read_text(file, most_bytes), file.string());
}

StoredDocument StoredDocument::parse(const std::string& text, const std::string& place) {
  try {
    StoredDocument document(Json::parse(text));
    document.file_ = place;
    if (!document.value_->is_object()) fail_file(place, "must hold a JSON object");
    return document;
  } catch (const Json::exception& damage) {
    fail_file(place, "is not a JSON document: " + reason_of(damage));
  }
}

StoredDocument StoredDocument::part(const Json* value, const std::string& key) const {
  StoredDocument part = *this;
  part.value_ = value;
  part.key_ = key_.empty() || key.starts_with('[') ? key_ + key : key_ + "." + key;
  return part;
}

StoredDocument StoredDocument::operator[](const std::string& key) const {
  if (is_unknown()) return part(nullptr, key);
  if (!value_->is_object()) fail("must be an object");
  const auto found = value_->find(key);
  return part(found == value_->end() ? nullptr : &*found, key);
}

std::string StoredDocument::text() const {
  if (is_missing() || !value_->is_string()) fail("must be a text");
  return value_->get<std::string>();
}

std::string StoredDocument::one_of(std::span<const std::string_view> words) const {
  const std::string word = text();
  if (std::find(words.begin(), words.end(), word) == words.end())
    fail("must be one of " + join(words));
  return word;
}

Size StoredDocument::integer(Size least, Size most) const {
  // A number that no Size holds is compared as a negative one.
  if (is_missing() || !value_->is_number_integer() || *value_ < least || *value_ > most)
    fail(fmt::format("must be an integer from {} to {}", least, most));
  return value_->get<Size>();
}

double StoredDocument::number(double least, double most) const {
  if (is_missing() || !value_->is_number() || !(value_->get<double>() >= least) ||
      value_->get<double>() > most)
    fail(fmt::format("must be a number from {:g} to {:g}", least, most));
  return value_->get<double>();
}

void StoredDocument::check_numbers() const {
  if (is_missing() || !value_->is_array() ||
      !std::all_of(value_->begin(), value_->end(),
                   [](const Json& one) { return one.is_number() || one.is_null(); }))
    fail("must be a list of numbers");
}

std::vector<StoredDocument> StoredDocument::parts(bool of_list) const {
  if (is_missing() || !(of_list ? value_->is_array() : value_->is_object()))
    fail(of_list ? "must be a list" : "must be an object");
  std::vector<StoredDocument> parts;
  for (const auto& [key, value] : value_->items())
    parts.push_back(part(&value, of_list ? fmt::format("[{}]", key) : key));
  return parts;
}

void StoredDocument::fail(const std::string& must) const {
  if (is_missing()) fail_file(file_, fmt::format("{}: is missing; it {}", key_, must));
  fail_file(file_, fmt::format("{} = {}: {}", key_, shown(*value_), must));
}

}  // namespace tessera::bench
