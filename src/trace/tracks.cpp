#include "trace/tracks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace mindpipe {
namespace {

std::string name_of_queue(const QueueKey& key, std::string_view peers) {
  if (key.peer >= 0)
    return fmt::format("{} {} {} {}", name_of(key.payload), key.outgoing ? "to" : "from", peers, key.peer);
  if (key.group != Members::none) return fmt::format("{} group", name_of(key.group));
  return std::string(name_of(key.queue));
}

}  // namespace

std::vector<int> lanes_of(const std::vector<Recorder::Times>& slices) {
  std::vector<std::size_t> order(slices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(slices[a].start, slices[a].end) < std::tie(slices[b].start, slices[b].end);
  });
  std::vector<int> lanes(slices.size(), 0);
  std::vector<std::int64_t> ended;  // when each lane's last slice did
  for (std::size_t i : order) {
    if (slices[i].end == 0) continue;
    const auto free =
        std::find_if(ended.begin(), ended.end(), [&](std::int64_t end) { return end <= slices[i].start; });
    lanes[i] = static_cast<int>(free - ended.begin());
    if (free == ended.end()) ended.push_back(slices[i].end);
    else *free = slices[i].end;
  }
  return lanes;
}

Tracks tracks_of(const std::vector<Action>& actions, const std::vector<Recorder::Times>& times,
                 std::string_view peers) {
  std::map<QueueKey, std::vector<std::size_t>> queues;
  for (std::size_t i = 0; i < actions.size(); ++i) queues[queue_of(actions[i])].push_back(i);
  Tracks tracks;
  tracks.of.resize(actions.size());
  for (const auto& [key, places] : queues) {
    std::vector<Recorder::Times>
        slices;  // of all runs: one may begin before the run before it has ended everywhere
    for (const std::size_t i : places) slices.push_back(times[i]);
    const std::vector<int> lanes = lanes_of(slices);
    const int first = static_cast<int>(tracks.names.size()),
              most = *std::max_element(lanes.begin(), lanes.end());
    for (int lane = 0; lane <= most; ++lane)
      tracks.names.push_back(name_of_queue(key, peers) +
                             (lane == 0 ? "" : fmt::format(", lane {}", lane + 1)));
    for (std::size_t k = 0; k < lanes.size(); ++k) tracks.of[places[k]] = first + lanes[k];
  }
  return tracks;
}

}  // namespace mindpipe
