// SPDX-License-Identifier: Apache-2.0
// JSON documents as typed values. A type lists its fields once, each with its key and its meaning,
// for writing, reading and documentation. Units are part of the keys.
//
//   struct Interval {
//     double low_seconds = 0, high_seconds = 0;
//     static void fields(auto& f, auto& v) {
//       f("low_seconds", v.low_seconds, "of the fastest step");
//       f("high_seconds", v.high_seconds, "of the slowest step", positive);
//     }
//   };
//
// Null stands for an empty text, for an optional without a value, and for a number that is not
// finite.
#pragma once

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/fields.hpp>
#include <tessera/base/names.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/types.hpp>

namespace tessera::bench {

class DocumentWriter;
class StoredDocument;

/// Returns the names that lead to a key in a document: "limits.case_seconds" is in the object
/// "limits". A key without a section switches its section on: "verify" is "verify.enabled".
inline std::vector<std::string> place_of(const std::string& key) {
  std::vector<std::string> names = split_text(key, '.');
  if (names.size() == 1) names.emplace_back("enabled");
  return names;
}

template <class T>
concept HasFields = requires(T& value, DocumentWriter& f) {
  T::fields(f, value);
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// A field that is written, and ignored when it is read.
template <class T>
struct WrittenField {
  T value;
};
template <class T>
WrittenField<T> written(T value) {
  return {std::move(value)};
}

/// A JSON document from a file that people may have edited, or a part of one. It knows its file and
/// key: reading a value as a type that it does not have throws Error (usage), "results/study.json:
/// limits.case_seconds = "long": must be a number from 1e-100 to 1e+100".
class StoredDocument {
 public:
  /// Returns none if there is no file. Throws Error (usage) for a file that does not hold a JSON
  /// object.
  static std::optional<StoredDocument> read(const std::filesystem::path& file);
  /// `place` stands for the text in messages. Throws like read().
  static StoredDocument parse(const std::string& text, const std::string& place);
  /// A value from another rank.
  explicit StoredDocument(nlohmann::json value);

  const nlohmann::json& json() const { return *value_; }
  /// Returns a part of an object; it may be missing.
  StoredDocument operator[](const std::string& key) const;
  bool is_missing() const { return value_ == nullptr; }
  /// Returns true if the value is missing or null.
  bool is_unknown() const { return is_missing() || value_->is_null(); }

  std::string text() const;
  std::string one_of(std::span<const std::string_view> words) const;
  Size integer(Size least, Size most) const;
  /// Throws unless it is a number from `least` to `most`. The quotient of two numbers within the
  /// default limits is finite.
  double number(double least = 1e-100, double most = 1e100) const;
  /// Throws unless it is a list of numbers, where null stands for one that was not finite.
  void check_numbers() const;
  /// Returns the parts of a list, or of an object.
  std::vector<StoredDocument> parts(bool of_list) const;
  [[noreturn]] void fail(const std::string& must) const;

  /// Reads the value as a T.
  template <class T>
  T as() const {
    T value{};
    read_into(value);
    return value;
  }

  /// Reads a field of an object. The check gets the stored value, unless that may be unknown and
  /// is.
  template <class T, class... Check>
  void operator()(const char* key, T&& value, const char* = "", Check... check) const {
    const StoredDocument stored = (*this)[key];
    if (!is_optional<std::remove_reference_t<T>> || !stored.is_unknown()) (check(stored), ...);
    stored.read_into(value);
  }
  /// Reads the fields of a list, each from the place of its key.
  template <class T>
  void operator()(const Fields<T>& fields, T& whole) const {
    for (const Field<T>& field : fields) {
      StoredDocument stored = *this;
      for (const std::string& name : place_of(field.key)) stored = stored[name];
      if (stored.is_missing()) stored.fail("must be " + field.type);
      if (stored.is_unknown() && field.standard.is_null()) continue;
      try {
        field.set(whole, stored.json());
        check_bounds(field.key, stored.json(), field.bounds);
      } catch (const ConfigError& error) {
        stored.fail(error.allowed());
      }
    }
  }

 private:
  StoredDocument() = default;
  StoredDocument part(const nlohmann::json* value, const std::string& key) const;

  template <class T>
  void read_into(WrittenField<T>&) const {}
  template <class T>
  void read_into(T& value) const;

  std::shared_ptr<const nlohmann::json> whole_;
  const nlohmann::json* value_ = nullptr;
  std::string file_, key_;
};

template <class T>
void StoredDocument::read_into(T& value) const {
  constexpr Size most = Size{1} << 62;
  if constexpr (HasFields<T>) {
    parts(false);  // checks that it is an object
    T::fields(*this, value);
  } else if constexpr (is_optional<T>) {
    value.reset();
    if (!is_unknown()) read_into(value.emplace());
  } else if constexpr (is_vector<T>) {
    value.clear();
    if constexpr (std::is_same_v<T, std::vector<double>>) {
      check_numbers();
      for (const nlohmann::json& one : *value_)
        value.push_back(one.is_null() ? NAN : one.get<double>());
    } else {
      for (const StoredDocument& one : parts(true)) one.read_into(value.emplace_back());
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = is_unknown() ? "" : text();
  } else if constexpr (std::is_same_v<T, nlohmann::json>) {
    value = is_missing() ? nlohmann::json() : *value_;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (is_missing() || !value_->is_boolean()) fail("must be true or false");
    value = value_->template get<bool>();
  } else if constexpr (Named<T>) {
    value = *value_named<T>(one_of(names_of<T>));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    value = static_cast<T>(integer(0, most));
  } else if constexpr (std::is_floating_point_v<T>) {
    value = !is_missing() && value_->is_null() ? NAN : number(-1e308, 1e308);
  } else {  // a map of sizes by name
    value.clear();
    parts(false);
    for (const auto& [key, unused] : value_->items()) (*this)[key].read_into(value[key]);
  }
}

template <class T>
nlohmann::json document_of(const T& value);
template <class T>
nlohmann::json document_of(const WrittenField<T>& field) {
  return document_of(field.value);
}

/// Writes the fields of an object.
class DocumentWriter {
 public:
  template <class T, class... Check>
  void operator()(const char* key, const T& value, const char* = "", Check...) {
    json[key] = document_of(value);
  }
  template <class T>
  void operator()(const Fields<T>& fields, const T& whole) {
    for (const Field<T>& field : fields) {
      const std::vector<std::string> place = place_of(field.key);
      json[place[0]][place[1]] = field.get(whole);
    }
  }
  nlohmann::json json = nlohmann::json::object();
};

template <class T>
nlohmann::json document_of(const T& value) {
  if constexpr (HasFields<T>) {
    DocumentWriter writer;
    T::fields(writer, value);
    return std::move(writer.json);
  } else if constexpr (is_optional<T>) {
    return value ? document_of(*value) : nlohmann::json();
  } else if constexpr (is_vector<T>) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& one : value) list.push_back(document_of(one));
    return list;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.empty() ? nlohmann::json() : nlohmann::json(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
  } else if constexpr (Named<T>) {
    return name_of(value);
  } else {
    return value;
  }
}

// Checks of fields.

/// A number from 1e-100 to 1e100.
inline void positive(const StoredDocument& stored) { stored.number(); }
/// A text that must not be missing.
inline void required(const StoredDocument& stored) { stored.text(); }
inline auto in_range(Size least, Size most) {
  return [=](const StoredDocument& stored) { stored.integer(least, most); };
}
inline auto one_of(std::span<const std::string_view> words) {
  return [=](const StoredDocument& stored) { stored.one_of(words); };
}

template <HasFields T>
void to_json(nlohmann::json& json, const T& value) {
  json = document_of(value);
}
template <HasFields T>
void from_json(const nlohmann::json& json, T& value) {
  value = StoredDocument(json).as<T>();
}

/// Returns a member of a part of a document that may be missing.
template <class Part, class Base, class T>
auto member_of(const std::optional<Part>& part, T Base::*member) {
  using Found = std::conditional_t<is_optional<T>, T, std::optional<T>>;
  return part ? Found((*part).*member) : Found();
}

}  // namespace tessera::bench
