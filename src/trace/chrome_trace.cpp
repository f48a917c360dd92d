#include "trace/chrome_trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "trace/chrome_writer.h"
#include "trace/tracks.h"

namespace mindpipe {
namespace {

std::string versions(const char* key, const std::vector<UnitVersion>& seen,
                     const std::vector<std::string>& names) {
  if (seen.empty()) return {};
  std::string text;
  for (const auto& [unit, version] : seen)
    fmt::format_to(std::back_inserter(text), R"({}"{}": {})", text.empty() ? "" : ", ", names[unit], version);
  return fmt::format(R"(, "{}": {{{}}})", key, text);
}

/// Whether a move comes before a drain, of units that nobody reads at once.
bool goes_home(const Action& action) { return action.owner.of == Owner::drain; }

/// Which units a message moves, and from or to which rank of the program.
std::string moved_units(const Action& action, const std::vector<std::string>& names) {
  std::string text;
  for (const int unit : action.units)
    fmt::format_to(std::back_inserter(text), R"({}"{}")", text.empty() ? "" : ", ", names[unit]);
  return fmt::format(R"(, "peer": {}, "moved": [{}]{})", action.peer, text,
                     goes_home(action) ? R"(, "home": true)" : "");
}

/// Where an action belongs: its step and its number in the list, its subnet, or its window.
std::string belongs_to(const KeptAction& kept) {
  const std::string subnet = fmt::format(
      R"("{}": {})", kept.action.owner.of == Owner::window ? "window" : "subnet", kept.action.owner.number);
  if (kept.step == 0) return subnet;
  return fmt::format(R"("step": {}, "action": {}{}{})", kept.step, kept.number,
                     kept.action.owner.number != 0 ? ", " : "", kept.action.owner.number != 0 ? subnet : "");
}

std::string details(const KeptAction& kept, const TracedRank& rank) {
  const Action& action = kept.action;
  std::string text = belongs_to(kept) + details_of(action, kept.bytes);
  if (is_collective(action) && action.unit >= 0)
    text += fmt::format(R"(, "unit": "{}")", rank.units[action.unit]);
  if (is_move(action)) text += moved_units(action, rank.units);
  return text + versions("units", kept.units, rank.units) + versions("shared", kept.shared, rank.units);
}

/// The ends of messages' arrows that lie on one rank.
class Arrows {
 public:
  explicit Arrows(const TracedRank& rank) : rank_(rank) {}
  /// The end that is here. The other one has the same name: what the message is of, and, where several are of
  /// the same, the how manieth of them, since a channel keeps their order.
  std::string end_of(const KeptAction& kept, int thread, std::int64_t at) {
    const Action& action = kept.action;
    const bool from_here = sends(action);
    const int from = from_here ? rank_.place : action.peer, to = from_here ? action.peer : rank_.place;
    const std::string of = fmt::format(
        "{}.{}>{}.{}.{}.{}.{}.{}.{}{}", rank_.replica, from, to, static_cast<int>(action.payload), kept.step,
        action.owner.number, action.micro_batch, is_move(action) ? action.units.front() : action.unit,
        action.part, goes_home(action) ? ".home" : "");
    const int before = seen_[of]++;
    return fmt::format(
        R"("ph": "{}", {}"cat": "message", "name": "{}", "id": "{}{}", "pid": {}, "tid": {}, "ts": {})",
        from_here ? "s" : "f", from_here ? "" : R"("bp": "e", )", name_of(action.payload), of,
        before == 0 ? "" : fmt::format(".{}", before), rank_.rank, thread, microseconds(at));
  }

 private:
  const TracedRank& rank_;
  std::map<std::string, int> seen_;
};

Tracks name_tracks(ChromeWriter& out, const TracedRank& rank) {
  std::vector<Action> list;
  std::vector<Recorder::Times> times;
  for (const KeptAction& kept : rank.actions) {
    list.push_back(kept.action);
    times.push_back(kept.times);
  }
  Tracks tracks = tracks_of(list, times, rank.peers);
  out.give_name("process", rank.rank, 0, rank.name, rank.rank);
  for (int track = 0; track < std::ssize(tracks.names); ++track)
    out.give_name("thread", rank.rank, track, tracks.names[track], track);
  return tracks;
}

/// Writes the sums between the ranks that share a product, on a thread of their own behind the queues.
void write_sums(ChromeWriter& out, const TracedRank& rank, int thread, std::int64_t zero) {
  if (!rank.sums.empty()) out.give_name("thread", rank.rank, thread, "tensor", thread);
  for (const KeptSum& kept : rank.sums)
    out.slice(kept.sum.operation, "tensor", rank.rank, thread, {kept.sum.start, kept.sum.end}, zero,
              fmt::format(R"({}"bytes": {})", kept.step > 0 ? fmt::format(R"("step": {}, )", kept.step) : "",
                          kept.sum.bytes));
}

}  // namespace

std::string chrome_begin(const std::string& device) {
  return fmt::format(
      "{{\"displayTimeUnit\": \"ms\", \"otherData\": {{\"device\": \"{}\"}}, \"traceEvents\": [\n", device);
}

std::string chrome_events(const TracedRank& rank, std::int64_t zero) {
  ChromeWriter out;
  const Tracks tracks = name_tracks(out, rank);
  write_sums(out, rank, static_cast<int>(tracks.names.size()), zero);
  Arrows arrows(rank);
  for (std::size_t i = 0; i < rank.actions.size(); ++i) {
    const KeptAction& kept = rank.actions[i];
    const Action& action = kept.action;
    const bool has_ended = kept.times.end != 0;
    if (has_ended)
      out.slice(label_of(action), name_of(action.kind), rank.rank, tracks.of[i], kept.times, zero,
                details(kept, rank));
    if (!is_message(action) || kept.bytes == 0) continue;
    // An arrow ends inside the slice that it points to. One that is left out counts among its like.
    const std::int64_t at = sends(action) ? kept.times.start : std::max(kept.times.start, kept.times.end - 1);
    const std::string arrow = arrows.end_of(kept, tracks.of[i], at - zero);
    if (has_ended) out.event(arrow);
  }
  return out.take();
}

}  // namespace mindpipe
