#include "energy/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "core/check.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

Forecast made_forecast(std::mt19937& random) {
  std::uniform_int_distribution<int> hours(6, 72), grams(20, 900);
  Forecast forecast{1'795'000'000 / 3600 * 3600, {}};
  for (int hour = hours(random); hour > 0; --hour) forecast.hours.push_back(grams(random));
  return forecast;
}

/// Grams times seconds, minute by minute.
double grams_of(const Forecast& forecast, std::int64_t from, std::int64_t to) {
  double grams = 0;
  for (std::int64_t at = from; at < to; at += 60)
    grams += 60 * forecast.hours[static_cast<std::size_t>((at - forecast.begin) / 3600)];
  return grams;
}

TEST(BestStart, IsTheBestOfAllStartsByTheMinute) {
  std::mt19937 random(7);
  for (int made = 0; made < 200;) {
    const Forecast forecast = made_forecast(random);
    const std::int64_t hours = std::ssize(forecast.hours);
    std::uniform_int_distribution<std::int64_t> before(0, 90), length(10, 60 * hours / 2);
    const std::int64_t earliest = forecast.begin + 60 * before(random), seconds = 60 * length(random),
                       deadline = forecast.end() - 60 * before(random);
    if (earliest + seconds > deadline) continue;
    ++made;
    double least = 1e300;
    std::int64_t first = 0;
    for (std::int64_t start = earliest; start + seconds <= deadline; start += 60) {
      const double grams = grams_of(forecast, start, start + seconds);
      if (grams >= least) continue;  // sums of whole numbers: equal ones are equal
      least = grams;
      first = start;
    }
    const StartAdvice advice = best_start(forecast, static_cast<double>(seconds),
                                          static_cast<double>(earliest), static_cast<double>(deadline));
    EXPECT_NEAR(advice.intensity * static_cast<double>(seconds), least, 1e-9 * least) << made;
    EXPECT_NEAR(grams_of(forecast, static_cast<std::int64_t>(advice.start),
                         static_cast<std::int64_t>(advice.start) + seconds),
                least, 1e-9 * least)
        << made;
    EXPECT_EQ(advice.start, static_cast<double>(first)) << made;

    // With pauses: the cleanest minutes that there are.
    std::vector<double> minutes;
    for (std::int64_t at = earliest; at < deadline; at += 60)
      minutes.push_back(grams_of(forecast, at, at + 60));
    std::sort(minutes.begin(), minutes.end());
    double with_pauses = 0, paused = 0, taken = 0;
    for (std::int64_t i = 0; i < seconds / 60; ++i) with_pauses += minutes[static_cast<std::size_t>(i)];
    for (const TimeSpan& part : advice.parts) {
      paused += grams_of(forecast, static_cast<std::int64_t>(part.from), static_cast<std::int64_t>(part.to));
      taken += part.to - part.from;
    }
    EXPECT_NEAR(taken, static_cast<double>(seconds), 1e-6);
    EXPECT_NEAR(paused, with_pauses, 1e-9 * with_pauses) << made;
    EXPECT_NEAR(advice.with_pauses * static_cast<double>(seconds), with_pauses, 1e-9 * with_pauses);
  }
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(BestStart, RefusesAForecastThatDoesNotReachTheDeadline) {
  const Forecast forecast{1'794'996'000, {100, 200}};
  const double begin = 1'794'996'000;
  EXPECT_THAT(refusal([&] { best_start(forecast, 60, begin, begin + 3 * 3600); }),
              HasSubstr("take a forecast that reaches that far"));
  EXPECT_THAT(refusal([&] { best_start(forecast, 3 * 3600, begin, begin + 7200); }),
              HasSubstr("the run takes 3 h 00 min, and 2 h 00 min are left"));
}

TEST(BestStart, IsTheEarliestOfEqualOnes) {
  const double begin = 1'794'996'000;
  const Forecast twice{1'794'996'000, {300, 100, 100, 300, 100, 100, 300}};
  const StartAdvice advice = best_start(twice, 3600, begin, begin + 7 * 3600);
  EXPECT_EQ(advice.start, begin + 3600);
  EXPECT_EQ(advice.parts.size(), 1u);
  EXPECT_EQ(best_start({1'794'996'000, {50, 50, 50}}, 5400, begin + 60, begin + 3 * 3600).start, begin + 60);
  EXPECT_EQ(best_start({1'794'996'000, {0, 0, 0}}, 5400, begin, begin + 3 * 3600).start, begin);
  // Thirds of grams, whose sums are rounded.
  const double third = 1.0 / 3;
  EXPECT_EQ(best_start({1'794'996'000, {third, third, third, third}}, 5000, begin, begin + 4 * 3600).start,
            begin);
}

TEST(BestStart, RefusesAForecastThatBeginsBehindTheDeadline) {
  const double begin = 1'795'701'600;
  EXPECT_THAT(
      refusal([&] {
        best_start({1'795'701'600, {100, 200}}, 60, begin, begin - 7200);
      }),
      HasSubstr("energy.forecast: begins at 2026-11-26T14:00Z, and the deadline is 2026-11-26T12:00Z"));
}

TEST(BestStart, RefusesAForecastThatHasEnded) {
  const double begin = 1'795'701'600;
  EXPECT_THAT(refusal([&] {
                best_start({1'795'701'600, {100, 200}}, 60, begin + 86400, begin + 7200);
              }),
              HasSubstr("energy.forecast: ended at 2026-11-26T16:00Z, and a run starts at "
                        "2026-11-27T14:00Z at the earliest; take a newer forecast"));
}

TEST(Forecast, ReadsHoursAndRefusesGaps) {
  const std::string path = testing::TempDir() + "forecast.csv";
  std::ofstream(path) << "# made\n2026-11-26T14:00Z,412\n2026-11-26T15:00Z,90.5\n";
  const Forecast forecast = read_forecast(path);
  EXPECT_EQ(forecast.begin, 1'795'701'600);
  EXPECT_EQ(forecast.hours, (std::vector<double>{412, 90.5}));
  std::ofstream(path) << "2026-11-26T14:00Z,412\n2026-11-26T16:00Z,90.5\n";
  EXPECT_THAT(refusal([&] { read_forecast(path); }),
              HasSubstr(":2: is for 2026-11-26T16:00Z, and 2026-11-26T15:00Z"));
  std::ofstream(path) << "\xef\xbb\xbf"
                         "2026-11-26T14:00Z, 412 \r\n  \r\n";
  EXPECT_EQ(read_forecast(path).hours, std::vector<double>{412});
  for (const char* date : {"2027-02-31", "2027-02-29", "2027-04-31"}) {
    std::ofstream(path) << date << "T00:00Z,5\n";
    EXPECT_THAT(refusal([&] { read_forecast(path); }),
                HasSubstr(std::string(":1: ") + date + " is no date: that month has fewer days"));
  }
  std::ofstream(path) << "2028-02-29T00:00Z,5\n";
  EXPECT_EQ(read_forecast(path).hours.size(), 1u);
  for (const char* grams : {"", " ", "0x1F4", "nan", "inf", "-4", "5;", "1e999"}) {
    std::ofstream(path) << "2026-11-26T14:00Z," << grams << "\n";
    EXPECT_THAT(refusal([&] { read_forecast(path); }), HasSubstr(":1: is no line of a forecast")) << grams;
  }
  std::ofstream(path) << "2026-11-26 14:00,412\n";
  EXPECT_THAT(refusal([&] { read_forecast(path); }), HasSubstr(":1: is no line of a forecast"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace mindpipe
