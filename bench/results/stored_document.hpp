// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// A JSON document from a file that people may have edited, or a part of one. It knows its file and
/// key: reading a value as a type that it does not have throws Error (usage), "results/study.json:
/// limits.case_seconds = "long": must be a positive number".
class StoredDocument {
 public:
  /// Returns none if there is no file. Throws Error (usage) for a file that does not hold a JSON
  /// object.
  static std::optional<StoredDocument> read(const std::filesystem::path& file);

  const nlohmann::json& json() const { return *value_; }
  /// Returns a part of an object; it may be missing.
  StoredDocument operator[](const std::string& key) const;
  bool is_missing() const { return value_ == nullptr; }
  /// Returns true if the value is missing or null.
  bool is_unknown() const { return is_missing() || value_->is_null(); }

  std::string text() const;
  std::string one_of(std::span<const char* const> words) const;
  bool truth() const;
  Size integer(Size least, Size most) const;
  double number() const;
  /// Reads a number from 1e-100 to 1e100, so that quotients of two are finite.
  double positive() const;
  /// Throws unless it is a list of numbers.
  void check_numbers() const;
  /// Accepts null for a number that was not finite, too.
  void check_numbers_or_null() const;
  std::vector<StoredDocument> list() const;
  /// Returns the parts of an object.
  std::vector<StoredDocument> parts() const;

  [[noreturn]] void fail(const std::string& must) const;

 private:
  StoredDocument part(const nlohmann::json* value, const std::string& key) const;

  std::shared_ptr<const nlohmann::json> whole_;
  const nlohmann::json* value_ = nullptr;
  std::string file_, key_;
};

/// Returns a value of an object, or `otherwise` if it is missing or null.
template <class T>
T value_or(const nlohmann::json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : found->template get<T>();
}

}  // namespace tessera::bench
