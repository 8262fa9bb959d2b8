// SPDX-License-Identifier: Apache-2.0
#include "results/stored_document.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/io/whole_file.hpp>

namespace tessera::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

[[noreturn]] void fail_file(const fs::path& file, const std::string& what) {
  throw Error(ExitCode::usage, file.string() + ": " + what);
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

std::optional<StoredDocument> StoredDocument::read(const fs::path& file) {
  constexpr Size most_bytes = Size{1} << 30;
  std::error_code error;
  if (!fs::exists(file, error) && !error) return std::nullopt;
  const std::string text = read_text(file, most_bytes);
  StoredDocument document;
  document.file_ = file.string();
  try {
    document.whole_ = std::make_shared<const Json>(Json::parse(text));
  } catch (const Json::exception& damage) {
    fail_file(file, "is not a JSON document: " + reason_of(damage));
  }
  document.value_ = document.whole_.get();
  if (!document.value_->is_object()) fail_file(file, "must hold a JSON object");
  return document;
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

std::string StoredDocument::one_of(std::span<const char* const> words) const {
  const std::string word = text();
  if (std::find(words.begin(), words.end(), word) == words.end())
    fail("must be one of " + join(std::vector<std::string_view>(words.begin(), words.end())));
  return word;
}

bool StoredDocument::truth() const {
  if (is_missing() || !value_->is_boolean()) fail("must be true or false");
  return value_->get<bool>();
}

Size StoredDocument::integer(Size least, Size most) const {
  const auto is_inside = [&] {
    if (is_missing() || !value_->is_number_integer()) return false;
    if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t(most))
      return false;
    return least <= value_->get<Size>() && value_->get<Size>() <= most;
  };
  if (!is_inside()) fail(fmt::format("must be an integer from {} to {}", least, most));
  return value_->get<Size>();
}

double StoredDocument::number() const {
  if (is_missing() || !value_->is_number()) fail("must be a number");
  return value_->get<double>();
}

double StoredDocument::positive() const {
  constexpr double least = 1e-100, most = 1e100;
  if (is_missing() || !value_->is_number() || !(value_->get<double>() >= least) ||
      value_->get<double>() > most)
    fail(fmt::format("must be a number from {:g} to {:g}", least, most));
  return value_->get<double>();
}

void StoredDocument::check_numbers() const {
  if (is_missing() || !value_->is_array() ||
      !std::all_of(value_->begin(), value_->end(), [](const Json& one) { return one.is_number(); }))
    fail("must be a list of numbers");
}

void StoredDocument::check_numbers_or_null() const {
  if (is_missing() || !value_->is_array() ||
      !std::all_of(value_->begin(), value_->end(),
                   [](const Json& one) { return one.is_number() || one.is_null(); }))
    fail("must be a list of numbers, or null in place of one");
}

std::vector<StoredDocument> StoredDocument::list() const {
  if (is_missing() || !value_->is_array()) fail("must be a list");
  std::vector<StoredDocument> list;
  for (const Json& value : *value_) list.push_back(part(&value, fmt::format("[{}]", list.size())));
  return list;
}

std::vector<StoredDocument> StoredDocument::parts() const {
  if (is_missing() || !value_->is_object()) fail("must be an object");
  std::vector<StoredDocument> parts;
  for (const auto& [key, value] : value_->items()) parts.push_back(part(&value, key));
  return parts;
}

void StoredDocument::fail(const std::string& must) const {
  if (is_missing()) fail_file(file_, fmt::format("{}: is missing; it {}", key_, must));
  fail_file(file_, fmt::format("{} = {}: {}", key_, shown(*value_), must));
}

}  // namespace tessera::bench
