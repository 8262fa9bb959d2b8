// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <tessera/base/fields.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

struct Wheel {
  double radius = 1;
  Size spokes = 0;
};
struct Bicycle {
  Wheel front{};
  std::optional<Size> gears{};
};

const Fields<Wheel>& wheel_fields() {
  using C = Wheel;
  static const Fields<C> fields{
      {"wheel.radius", &C::radius, "half of the height", positive, Tier::common, fixed},
      {"wheel.spokes", &C::spokes, "rods", Bounds{.least = 0, .most = 64},
       Rule<C>{[](const C& c) { return c.radius > 0.1; }, "needs wheel.radius > 0.1"},
       Rule<C>{[](const C& c) -> std::string { return c.spokes % 2 == 0 ? "" : "must be even"; },
               When::alone}},
  };
  return fields;
}

const Fields<Bicycle>& bicycle_fields() {
  static const Fields<Bicycle> fields = [] {
    Fields<Bicycle> all{{"gears", &Bicycle::gears, "speeds", up_to(30)}};
    add_part(
        all, wheel_fields(), [](auto& b) -> auto& { return b.front; });
    return all;
  }();
  return fields;
}

std::string rejection(const Bicycle& bicycle) {
  return test::error_of([&] { check(bicycle_fields(), bicycle); });
}

TEST(Fields, OfAPartBelongToTheWhole) {
  Bicycle bicycle;
  const Field<Bicycle>& spokes = bicycle_fields().at(2);
  EXPECT_EQ(spokes.key, "wheel.spokes");
  EXPECT_TRUE(spokes.is_default(bicycle));
  spokes.set(bicycle, 32);
  EXPECT_EQ(bicycle.front.spokes, 32);
  EXPECT_EQ(spokes.get(bicycle), 32);
  EXPECT_FALSE(spokes.is_default(bicycle) || is_default(bicycle_fields(), bicycle));
  EXPECT_TRUE(bicycle_fields().at(1).is_fixed && !spokes.is_fixed);
  EXPECT_EQ(bicycle_fields().at(1).tier, Tier::common);
  EXPECT_EQ(test::error_of([&] { spokes.set(bicycle, "many"); }),
            "wheel.spokes = \"many\": must be an integer");
  EXPECT_TRUE(bicycle_fields().at(0).get(bicycle).is_null());
}

TEST(Fields, NumbersOutsideOfTheirBoundsAreNamed) {
  check(bicycle_fields(), Bicycle{});
  EXPECT_EQ(rejection({.gears = 0}), "gears = 0: must be positive");
  EXPECT_EQ(rejection({.gears = 31}), "gears = 31: must be at most 30");
  for (const double radius : {0.0, -1.0, std::nan(""), HUGE_VAL})
    EXPECT_NE(rejection({.front = {.radius = radius}}).find("must be positive and finite"),
              std::string::npos);
  EXPECT_EQ(rejection({.front = {.spokes = 66}}), "wheel.spokes = 66: must be from 0 to 64");
}

TEST(Fields, RulesReadOtherFieldsUnlessTheyStandAlone) {
  EXPECT_EQ(rejection({.front = {.radius = 0.01, .spokes = 8}}),
            "wheel.spokes = 8: needs wheel.radius > 0.1");
  check(bicycle_fields(), {.front = {.radius = 0.01}});  // the default needs nothing
  const Field<Wheel>& spokes = wheel_fields().at(1);
  spokes.check({.radius = 0.01, .spokes = 8}, true);
  EXPECT_EQ(test::error_of([&] { spokes.check({.spokes = 7}, true); }),
            "wheel.spokes = 7: must be even");
}

}  // namespace
}  // namespace tessera
