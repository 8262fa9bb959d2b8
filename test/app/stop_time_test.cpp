// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>

#include <tessera/app/stop_time.hpp>
#include <tessera/base/text.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

std::optional<std::int64_t> time_of(const std::string& until) {
  Config config = config_test::tutorial();
  config.checkpoint.directory = "saves";
  return time_to_stop(until, config);
}

/// Sets the time zone until the end of a test.
class Place {
 public:
  explicit Place(const char* zone) {
    if (const char* const now = std::getenv("TZ")) before_ = now;
    setenv("TZ", zone, 1);
    tzset();
  }
  ~Place() {
    before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
    tzset();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  std::optional<std::string> before_;
};

std::string local_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return text;
}

constexpr const char* zones[] = {"UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "NPT-5:45"};
constexpr std::int64_t last_second = 253402300799;  // year 9999, UTC

TEST(StopTime, ReadsKnownDates) {
  const Place place("UTC0");
  EXPECT_EQ(time_of("1970-01-01T00:00:00"), 0);
  EXPECT_EQ(time_of("2026-11-24T06:00:00"), 1795500000);
  EXPECT_EQ(time_of("2262-04-11T23:47:17"), 9223372037) << "nanoseconds end one second before";
  EXPECT_EQ(time_of("9999-12-31T23:59:59"), last_second);
  EXPECT_EQ(time_of("1795500000"), 1795500000);
  EXPECT_EQ(time_of("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(time_of(""), std::nullopt);
  EXPECT_GT(seconds_now(), 1700000000);
}

TEST(StopTime, RejectsDatesThatDoNotExist) {
  const Place place("CET-1CEST,M3.5.0,M10.5.0/3");
  const std::string wrong =
      "2027-02-30T00:00:00;2027-02-29T00:00:00;2100-02-29T00:00:00;2027-04-31T00:00:00;"
      "2027-13-01T00:00:00;2027-00-01T00:00:00;2027-01-00T00:00:00;2027-01-32T00:00:00;"
      "2027-01-01T24:00:00;2027-01-01T25:00:00;2027-01-01T00:60:00;2027-01-01T00:00:60;"
      "2027-01-01T00:00;2027-01-01;2027-1-1T0:0:0;2027-01-01 00:00:00;2027-01-01T00:00:00Z;"
      "2027-01-01T00:00:00 ; 2027-01-01T00:00:00;tomorrow;1e9;9223372036854775808;12.5;"
      "99999-01-01T00:00:00;-2027-01-01T00:00:00;2027-03-28T02:30:00";
  for (const std::string& until : split_text(wrong, ';'))
    config_test::expect_error([&] { time_of(until); },
                              {"--until = " + until + ": must be a local date and time that exists",
                               "like 2026-11-24T06:00:00, or seconds since 1970"});
  for (const char* until :
       {"2028-02-29T00:00:00", "2000-02-29T23:59:59", "2027-03-28T03:00:00", "2400-02-29T00:00:00"})
    EXPECT_TRUE(time_of(until)) << until;
}

// Clocks show one hour of a year twice; either time is right.
TEST(StopTime, ReadsEveryTimeThatItWrites) {
  std::mt19937_64 random(11);
  for (const char* zone : zones) {
    const Place place(zone);
    for (int trial = 0; trial < 20000; ++trial) {
      const auto seconds = static_cast<std::int64_t>(random() % (last_second - 86400));
      const std::string text = local_text(seconds);
      const auto read = time_of(text);
      ASSERT_TRUE(read) << text << " in " << zone;
      EXPECT_EQ(local_text(*read), text) << zone;
      EXPECT_LE(std::abs(*read - seconds), 3600) << text << " in " << zone;
    }
  }
}

TEST(StopTime, NeedsADirectory) {
  config_test::expect_error([] { time_to_stop("1000", config_test::tutorial()); },
                            {"--until = 1000: needs checkpoint.directory"});
}

}  // namespace
}  // namespace tessera
