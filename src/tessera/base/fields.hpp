// SPDX-License-Identifier: Apache-2.0
// One list of fields per struct: key, member, meaning, and which values are allowed. Files, command
// lines, checks, comparisons, printing and documentation are derived from it.
//
//   const Fields<ClipConfig>& clip_fields() {
//     using C = ClipConfig;
//     static const Fields<C> fields{
//         {"clip.global_norm", &C::global_norm, "clip the gradient to this global norm", positive},
//         ...};
//     return fields;
//   }
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/field_values.hpp>
#include <tessera/base/names.hpp>
#include <tessera/base/toml_value.hpp>

namespace tessera {

/// Who needs a key.
enum class Tier : std::uint8_t {
  common,    ///< everyone
  expert,    ///< those who tune a training
  internal,  ///< those who examine Tessera itself
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<Tier>{"common", "expert", "internal"};

/// The numbers that a field may have. Infinity and NaN are never allowed.
struct Bounds {
  double least = -HUGE_VAL, most = HUGE_VAL;
  bool above = false, below = false;  ///< `least` or `most` itself is not allowed
  const char* allowed = nullptr;      ///< "must be in [0, 1)"; null: made from the limits
};
inline constexpr Bounds positive{.least = 0, .above = true}, not_negative{.least = 0},
    fraction{.least = 0, .most = 1},
    below_one{.least = 0, .most = 1, .below = true, .allowed = "must be in [0, 1)"};
/// An integer that TOML can hold.
inline constexpr Bounds a_seed{
    .least = 0, .most = 0x1p63, .below = true, .allowed = "must be at most 2^63 - 1"};
/// A positive number of at most `most`.
constexpr Bounds up_to(double most) { return {.least = 0, .most = most, .above = true}; }

/// Throws ConfigError for a number outside of its bounds. Other values pass.
void check_bounds(std::string_view key, const nlohmann::json& value, const Bounds& bounds);

/// When a rule is checked.
enum class When : std::uint8_t {
  set,     ///< where the value is not the default
  always,  ///< also for the default
  alone,   ///< always; it reads no other field, so that each value can be checked as it is read
};

/// A predicate on a field, which may read the other fields of the struct, and what it allows.
template <class T>
struct Rule {
  /// Returns what is allowed instead of the field's value; "" if the value is.
  std::function<std::string(const T&)> violation;
  When when = When::set;

  Rule(std::function<std::string(const T&)> violation, When when)
      : violation(std::move(violation)), when(when) {}
  Rule(bool (*holds)(const T&), std::string allowed, When when = When::set)
      : violation([holds, allowed = std::move(allowed)](const T& whole) {
          return holds(whole) ? "" : allowed;
        }),
        when(when) {}
};

/// A marker of fields that must stay as they are when a training resumes.
struct Fixed {};
inline constexpr Fixed fixed{};

/// Returns a T with its defaults. In static memory, because GCC 12 takes an empty optional of a
/// temporary for an uninitialized number.
template <class T>
const T& defaults() {
  static const T value{};
  return value;
}

/// A field of T.
template <class T>
struct Field {
  std::string key;      ///< as files have it: "section.name"
  std::string meaning;  ///< half a line
  std::string type;     ///< "an integer"
  Tier tier = Tier::expert;
  bool is_fixed = false;  ///< must not change when a training resumes
  bool is_text = false;   ///< the value, or each entry of a table, may be any string
  Bounds bounds{};
  std::vector<Rule<T>> rules{};
  HintFor hint_for = did_you_mean;  ///< for a wrong name of a value
  /// Throws ConfigError for a value of another type.
  std::function<void(T&, const nlohmann::json&)> set;
  /// Returns null if the field is unset.
  std::function<nlohmann::json(const T&)> get;
  nlohmann::json standard;  ///< the default

  /// A field of a list for another struct. `path(whole)` returns the part that `other` is of.
  template <class Part, class Path>
  Field(const Field<Part>& other, Path path)
      : key(other.key),
        meaning(other.meaning),
        type(other.type),
        tier(other.tier),
        is_fixed(other.is_fixed),
        is_text(other.is_text),
        bounds(other.bounds),
        hint_for(other.hint_for),
        set([set = other.set, path](T& t, const nlohmann::json& v) { set(path(t), v); }),
        get([get = other.get, path](const T& t) { return get(path(t)); }),
        standard(other.standard) {
    for (const Rule<Part>& rule : other.rules)
      rules.emplace_back(
          [violation = rule.violation, path](const T& t) { return violation(path(t)); }, rule.when);
  }

  /// `options`: Bounds, Rule, Tier, fixed, or a HintFor, in any order.
  template <class Base, class V, class... Options>
  requires std::derived_from<T, Base> Field(std::string name, V Base::*member, std::string what,
                                            Options... options)
      : key(std::move(name)),
        meaning(std::move(what)),
        type(type_text(V{})),
        is_text(is_free_text<V>),
        get([member](const T& t) { return as_json(t.*member); }),
        standard(get(defaults<T>())) {
    (add(std::move(options)), ...);
    set = [member, key = key, hint_for = hint_for](T& t, const nlohmann::json& value) {
      assign(key, value, t.*member, hint_for);
    };
    if constexpr (Named<V>)  // a program may have set a number that is no enumerator
      rules.emplace_back(
          [member](const T& t) {
            const bool is_named = static_cast<std::size_t>(t.*member) < values_of<V>().size();
            return is_named ? "" : "must be " + type_text(V{});
          },
          When::alone);
  }

  bool is_default(const T& whole) const { return get(whole) == standard; }

  /// Returns the meaning, and the names that an enumeration may have.
  std::string comment() const {
    constexpr std::string_view names = "one of ";
    return meaning + (type.starts_with(names) ? ": " + type.substr(names.size()) : "");
  }

  /// Throws ConfigError if the value breaks a rule of these kinds; with `alone` false, of all.
  void check(const T& whole, bool alone = false) const {
    const nlohmann::json value = get(whole);
    check_bounds(key, value, bounds);
    for (const Rule<T>& rule : rules) {
      if (rule.when == When::set ? alone || value == standard : alone && rule.when != When::alone)
        continue;
      if (const std::string allowed = rule.violation(whole); !allowed.empty())
        reject(key, value, allowed);
    }
  }

 private:
  void add(Bounds given) { bounds = given; }
  void add(Rule<T> given) { rules.push_back(std::move(given)); }
  void add(Tier given) { tier = given; }
  void add(Fixed) { is_fixed = true; }
  void add(HintFor given) { hint_for = given; }
};

template <class T>
using Fields = std::vector<Field<T>>;

/// Checks all fields in their order.
template <class T>
void check(const Fields<T>& fields, const T& whole) {
  for (const Field<T>& field : fields) field.check(whole);
}

template <class T>
bool is_default(const Fields<T>& fields, const T& whole) {
  for (const Field<T>& field : fields)
    if (!field.is_default(whole)) return false;
  return true;
}

/// Appends the fields of a part to a list for the whole. `path(whole)` returns the part.
template <class T, class Part, class Path>
void add_part(Fields<T>& fields, const Fields<Part>& part, Path path) {
  for (const Field<Part>& field : part) fields.emplace_back(field, path);
}

}  // namespace tessera
