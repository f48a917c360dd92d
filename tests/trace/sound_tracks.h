#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mindpipe {

/// Checks what readers of the format demand of complete events and flows: no two slices of a track overlap
/// (the program nests none), every flow begins once and ends once, not before it began, and both of its ends
/// lie in slices of their tracks: in that of a send, and of a receive.
inline void expect_sound_tracks(const nlohmann::json& file) {
  struct Slice {
    std::int64_t start, end;
    std::string kind;
  };
  const auto nanoseconds = [](const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1e3);
  };
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  std::map<std::pair<int, int>, std::string> names;
  for (const auto& event : file["traceEvents"]) {
    const std::pair<int, int> track{event["pid"], event["tid"]};
    if (event["name"] == "thread_name") names[track] = event["args"]["name"];
    if (event["ph"] == "X")
      tracks[track].push_back(
          {nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"]), event["cat"]});
  }
  for (auto& [track, slices] : tracks) {
    EXPECT_TRUE(names.count(track)) << "thread " << track.second << " of process " << track.first
                                    << " has no name";
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return std::tie(a.start, a.end) < std::tie(b.start, b.end);
    });
    for (std::size_t i = 1; i < slices.size(); ++i)
      EXPECT_LE(slices[i - 1].end, slices[i].start) << names[track] << " of process " << track.first << ": "
                                                    << slices[i - 1].kind << " and " << slices[i].kind;
  }
  std::map<std::string, std::vector<std::int64_t>> flows;  // when each began, and ended
  std::vector<nlohmann::json> ends;                        // whichever rank's stand first in the file
  for (const char* end : {"s", "f"})
    for (const auto& event : file["traceEvents"])
      if (event["ph"] == end) ends.push_back(event);
  for (const auto& event : ends) {
    const std::int64_t at = nanoseconds(event["ts"]);
    const auto& slices = tracks[{event["pid"], event["tid"]}];
    const std::string kind = event["ph"] == "s" ? "send" : "receive";
    EXPECT_TRUE(std::any_of(slices.begin(), slices.end(),
                            [&](const Slice& s) { return s.start <= at && at <= s.end && s.kind == kind; }))
        << "no " << kind << " at an end of " << event;
    EXPECT_EQ(flows[event["id"]].size(), kind == "send" ? 0u : 1u) << event;
    flows[event["id"]].push_back(at);
  }
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 2u) << id;
    EXPECT_LE(ends[0], ends[1]) << id;
  }
}

}  // namespace mindpipe
