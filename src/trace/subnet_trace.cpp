#include "trace/subnet_trace.h"

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

/// A move before a cut, of units that nobody reads at once.
bool goes_home(const Action& action) { return is_move(action) && action.chunk < 0; }

/// Which units a message moves, and from or to which rank of the program.
std::string moved_units(const Action& action, const std::vector<std::string>& names) {
  std::string text;
  for (const int unit : action.units)
    fmt::format_to(std::back_inserter(text), R"({}"{}")", text.empty() ? "" : ", ", names[unit]);
  return fmt::format(R"(, "peer": {}, "moved": [{}]{})", action.peer, text,
                     goes_home(action) ? R"(, "home": true)" : "");
}

/// The end of a message's arrow that is here; the other end has the same name.
std::string arrow(const Action& action, const TracedSubnets& rank, int thread, std::int64_t at) {
  const bool from_here = sends(action);
  const std::string id =
      fmt::format("{}.{}>{}.{}.{}.{}.{}.{}.{}{}", rank.replica, from_here ? rank.place : action.peer,
                  from_here ? action.peer : rank.place, static_cast<int>(action.payload), action.subnet,
                  action.micro_batch, is_move(action) ? action.units.front() : action.unit,
                  action.unit < 0 ? -1 : action.first, action.part, goes_home(action) ? ".home" : "");
  return fmt::format(
      R"("ph": "{}", {}"cat": "message", "name": "{}", "id": "{}", "pid": {}, "tid": {}, "ts": {})",
      from_here ? "s" : "f", from_here ? "" : R"("bp": "e", )", name_of(action.payload), id, rank.rank,
      thread, microseconds(at));
}

}  // namespace

std::string subnet_events(const TracedSubnets& rank, std::int64_t zero) {
  std::vector<Action> list;
  std::vector<std::vector<Recorder::Times>> times(1);
  for (const KeptAction& kept : rank.actions) {
    list.push_back(kept.action);
    times.front().push_back(kept.times);
  }
  const Tracks tracks = tracks_of(list, times, rank.has_lanes ? "place" : "stage");
  ChromeWriter out;
  out.give_name("process", rank.rank, 0, rank.name, rank.rank);
  for (int track = 0; track < static_cast<int>(tracks.names.size()); ++track)
    out.give_name("thread", rank.rank, track, tracks.names[track], track);
  const int of_sums = static_cast<int>(tracks.names.size());
  if (!rank.sums.empty()) out.give_name("thread", rank.rank, of_sums, "tensor", of_sums);
  for (const Recorder::Sum& sum : rank.sums)
    out.slice(sum.operation, "tensor", rank.rank, of_sums, {sum.start, sum.end}, zero,
              fmt::format(R"("bytes": {})", sum.bytes));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const KeptAction& kept = rank.actions[i];
    const Action& action = kept.action;
    const int thread = tracks.of.front()[i];
    std::string args = fmt::format(R"("{}": {})", kept.of_window ? "window" : "subnet", action.subnet);
    args += details_of(action, rank.bytes[i]);
    if (is_collective(action)) args += fmt::format(R"(, "unit": "{}")", rank.units[action.unit]);
    if (is_move(action)) args += moved_units(action, rank.units);
    args += versions("units", kept.units, rank.units) + versions("shared", kept.shared, rank.units);
    out.slice(label_of(action), name_of(action.kind), rank.rank, thread, kept.times, zero, args);
    if (!is_message(action) || rank.bytes[i] == 0) continue;
    // An arrow ends inside the slice that it points to.
    const std::int64_t at = sends(action) ? kept.times.start : std::max(kept.times.start, kept.times.end - 1);
    out.event(arrow(action, rank, thread, at - zero));
  }
  return out.take();
}

}  // namespace mindpipe
