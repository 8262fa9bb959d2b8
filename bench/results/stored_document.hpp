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

/// A JSON document from a file, or a part of one, which people may have edited. It knows file and
/// key: whoever asks for something else than what is there throws Error (usage),
/// "results/study.json: limits.case_seconds = "long": must be a positive number".
class StoredDocument {
 public:
  /// None if there is no file. Throws Error (usage) for one that does not hold a JSON object.
  static std::optional<StoredDocument> read(const std::filesystem::path& file);

  const nlohmann::json& json() const { return *value_; }
  /// A part of an object, or of nothing; it may be missing.
  StoredDocument operator[](const std::string& key) const;
  bool is_missing() const { return value_ == nullptr; }
  /// Missing, or null: RESULTS.md writes null for what is not known.
  bool is_unknown() const { return is_missing() || value_->is_null(); }

  std::string text() const;
  std::string one_of(std::span<const char* const> words) const;
  bool truth() const;
  Size integer(Size least, Size most) const;
  double number() const;
  /// Neither so small nor so large that a quotient of two such numbers would not be one.
  double positive() const;
  /// Throws unless it is a list of numbers.
  void check_numbers() const;
  /// The same; null is one that was not finite.
  void check_numbers_or_null() const;
  std::vector<StoredDocument> list() const;
  /// The parts of an object.
  std::vector<StoredDocument> parts() const;

  [[noreturn]] void fail(const std::string& must) const;

 private:
  StoredDocument part(const nlohmann::json* value, const std::string& key) const;

  std::shared_ptr<const nlohmann::json> whole_;
  const nlohmann::json* value_ = nullptr;
  std::string file_, key_;
};

/// A value of an object, or this one where it is missing or null.
template <class T>
T value_or(const nlohmann::json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : found->template get<T>();
}

}  // namespace tessera::bench
