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
  for (int made = 0; made < 200; ++made) {
    const Forecast forecast = made_forecast(random);
    const std::int64_t hours = std::ssize(forecast.hours);
    std::uniform_int_distribution<std::int64_t> before(0, 90), length(10, 60 * hours / 2);
    const std::int64_t earliest = forecast.begin + 60 * before(random), seconds = 60 * length(random),
                       deadline = forecast.end() - 60 * before(random);
    if (earliest + seconds > deadline) continue;
    double least = 1e300;
    for (std::int64_t start = earliest; start + seconds <= deadline; start += 60)
      least = std::min(least, grams_of(forecast, start, start + seconds));
    const StartAdvice advice = best_start(forecast, static_cast<double>(seconds),
                                          static_cast<double>(earliest), static_cast<double>(deadline));
    EXPECT_NEAR(advice.intensity * static_cast<double>(seconds), least, 1e-9 * least) << made;
    EXPECT_NEAR(grams_of(forecast, static_cast<std::int64_t>(advice.start),
                         static_cast<std::int64_t>(advice.start) + seconds),
                least, 1e-9 * least)
        << made;

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

TEST(Forecast, ReadsHoursAndRefusesGaps) {
  const std::string path = testing::TempDir() + "forecast.csv";
  std::ofstream(path) << "# made\n2026-11-26T14:00Z,412\n2026-11-26T15:00Z,90.5\n";
  const Forecast forecast = read_forecast(path);
  EXPECT_EQ(forecast.begin, 1'795'701'600);
  EXPECT_EQ(forecast.hours, (std::vector<double>{412, 90.5}));
  std::ofstream(path) << "2026-11-26T14:00Z,412\n2026-11-26T16:00Z,90.5\n";
  EXPECT_THAT(refusal([&] { read_forecast(path); }),
              HasSubstr(":2: is for 2026-11-26T16:00Z, and 2026-11-26T15:00Z"));
  std::ofstream(path) << "2026-11-26 14:00,412\n";
  EXPECT_THAT(refusal([&] { read_forecast(path); }), HasSubstr(":1: is no line of a forecast"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace mindpipe
