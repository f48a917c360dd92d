#include "energy/forecast.h"

#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/check.h"
#include "core/line_reader.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr double hour = 3600;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string date_of(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min);
}

/// A time in which the intensity does not change.
struct Piece {
  TimeSpan span;
  double intensity = 0;
};

std::vector<Piece> pieces_of(const Forecast& forecast, double from, double to) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < forecast.hours.size(); ++i) {
    const double begin = static_cast<double>(forecast.begin) + hour * static_cast<double>(i);
    const TimeSpan span{std::max(begin, from), std::min(begin + hour, to)};
    if (span.from < span.to) pieces.push_back({span, forecast.hours[i]});
  }
  return pieces;
}

/// The cleanest times of a run that may pause, in order of time; the last one is taken as far as needed.
void choose_parts(const Forecast& forecast, double seconds, double earliest, double deadline,
                  StartAdvice& advice) {
  std::vector<Piece> pieces = pieces_of(forecast, earliest, deadline);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.intensity < b.intensity; });
  double left = seconds, grams = 0;
  for (const Piece& piece : pieces) {
    const double taken = std::min(left, piece.span.to - piece.span.from);
    if (taken <= 0) break;
    advice.parts.push_back({piece.span.from, piece.span.from + taken});
    grams += taken * piece.intensity;
    left -= taken;
  }
  std::sort(advice.parts.begin(), advice.parts.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.from < b.from; });
  std::vector<TimeSpan> joined;
  for (const TimeSpan& part : advice.parts)
    if (!joined.empty() && joined.back().to == part.from) joined.back().to = part.to;
    else joined.push_back(part);
  advice.parts = std::move(joined);
  advice.with_pauses = grams / seconds;
}

/// Grams a kWh in decimal digits, with nothing but blanks behind.
std::optional<double> intensity_in(const char* text) {
  char* end = nullptr;
  const double grams = std::strtod(text, &end);
  const std::string digits(text, static_cast<const char*>(end)), behind(end);
  const bool is_decimal = digits.find_first_of("0123456789") != std::string::npos &&
                          digits.find_first_of("xX") == std::string::npos;
  if (!is_decimal || grams < 0 || !std::isfinite(grams) ||
      behind.find_first_not_of(" \t\r") != std::string::npos)
    return std::nullopt;
  return grams;
}

}  // namespace

double Forecast::mean(double from, double to) const {
  double grams = 0;
  for (const Piece& piece : pieces_of(*this, from, to))
    grams += piece.intensity * (piece.span.to - piece.span.from);
  return to > from ? grams / (to - from) : 0;
}

Forecast read_forecast(const std::string& path) {
  LineReader file(path, longest_own_line);
  Forecast forecast;
  for (std::string line; file.next(line);) {
    if (file.number() == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    std::tm parts{};
    const char* rest = strptime(line.c_str(), "%Y-%m-%dT%H:%MZ", &parts);
    const std::optional<double> intensity =
        rest != nullptr && *rest == ',' ? intensity_in(rest + 1) : std::nullopt;
    MP_REQUIRE(intensity, Exit::bad_data,
               "{}:{}: is no line of a forecast; write 2026-11-26T14:00Z,412: an hour in UTC and "
               "grams of CO2 a kWh",
               path, file.number());
    const std::tm written = parts;
    const std::int64_t begin = timegm(&parts);
    MP_REQUIRE(parts.tm_mday == written.tm_mday && parts.tm_hour == written.tm_hour, Exit::bad_data,
               "{}:{}: {} is no date: that month has fewer days", path, file.number(),
               line.substr(0, line.find('T')));
    if (forecast.hours.empty()) forecast.begin = begin;
    MP_REQUIRE(begin == forecast.end(), Exit::bad_data,
               "{}:{}: is for {}, and {} comes next: give every hour once", path, file.number(),
               date_of(static_cast<double>(begin)), date_of(static_cast<double>(forecast.end())));
    forecast.hours.push_back(*intensity);
  }
  MP_REQUIRE(!forecast.hours.empty(), Exit::bad_data, "{}: has no hours", path);
  return forecast;
}

StartAdvice best_start(const Forecast& forecast, double seconds, double earliest, double deadline) {
  const auto begin = static_cast<double>(forecast.begin), end = static_cast<double>(forecast.end());
  MP_REQUIRE(earliest < end, Exit::bad_configuration,
             "energy.forecast: ended at {}, and a run starts at {} at the earliest; take a newer forecast",
             date_of(end), date_of(earliest));
  MP_REQUIRE(
      deadline > begin, Exit::bad_configuration,
      "energy.forecast: begins at {}, and the deadline is {}; take a forecast that begins earlier, or set "
      "energy.deadline",
      date_of(begin), date_of(deadline));
  MP_REQUIRE(
      deadline <= end && earliest >= begin, Exit::bad_configuration,
      "energy.forecast: goes from {} to {}, and a start between {} and the deadline {} is asked for; take a "
      "forecast that reaches that far, or set energy.deadline",
      date_of(begin), date_of(end), date_of(earliest), date_of(deadline));
  MP_REQUIRE(seconds > 0 && earliest + seconds <= deadline, Exit::bad_configuration,
             "energy.deadline: the run takes {}, and {} are left until {}", human_seconds(seconds),
             human_seconds(std::max(0.0, deadline - earliest)), date_of(deadline));
  StartAdvice best;
  best.now = forecast.mean(earliest, earliest + seconds);
  best.start = earliest;
  best.intensity = best.now;
  // Between two hours' ends the mean is a straight line of the start, so the least is where one begins or
  // ends.
  std::vector<double> starts{deadline - seconds};
  for (double at = begin; at <= end; at += hour) {
    starts.push_back(at);
    starts.push_back(at - seconds);
  }
  std::sort(starts.begin(), starts.end());
  constexpr double the_same = 1e-9;
  for (const double start : starts) {
    if (start < earliest || start + seconds > deadline) continue;
    const double mean = forecast.mean(start, start + seconds);
    if (mean >= best.intensity * (1 - the_same)) continue;
    best.start = start;
    best.intensity = mean;
  }
  choose_parts(forecast, seconds, earliest, deadline, best);
  return best;
}

}  // namespace mindpipe
