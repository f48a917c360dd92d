#include "trace/chrome_trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/check.h"
#include "trace/chrome_writer.h"
#include "trace/tracks.h"

namespace mindpipe {
namespace {

/// Writes the sums between the ranks that share a product, on a thread of their own behind the queues.
void write_sums(ChromeWriter& out, const TracedRank& rank, int thread, std::int64_t first_step,
                std::int64_t zero) {
  if (std::all_of(rank.sums.begin(), rank.sums.end(), [](const auto& sums) { return sums.empty(); })) return;
  out.give_name("thread", rank.rank, thread, "tensor", thread);
  for (std::size_t step = 0; step < rank.sums.size(); ++step)
    for (const Recorder::Sum& sum : rank.sums[step])
      out.slice(
          sum.operation, "tensor", rank.rank, thread, {sum.start, sum.end}, zero,
          fmt::format(R"("step": {}, "bytes": {})", first_step + static_cast<std::int64_t>(step), sum.bytes));
}

struct FlowEnd {
  int pid, tid;
  Recorder::Times times;
  std::int64_t bytes;
};
/// Ends of messages by (step, from, to, payload), in the order of their channel.
using FlowEnds = std::map<std::tuple<std::size_t, int, int, Payload>, std::vector<FlowEnd>>;

void draw_arrows(ChromeWriter& out, const FlowEnds& sends, const FlowEnds& receives, std::int64_t first_step,
                 std::int64_t zero) {
  for (const auto& [channel, from] : sends) {
    const auto to = receives.find(channel);
    const auto& [step, sender, receiver, payload] = channel;
    const std::size_t pairs = to == receives.end() ? 0 : std::min(from.size(), to->second.size());
    for (std::size_t k = 0; k < pairs; ++k) {
      const FlowEnd &tail = from[k], &head = to->second[k];
      if (tail.times.end == 0 || head.times.end == 0 || tail.bytes == 0) continue;
      if (head.times.end < tail.times.start)
        continue;  // clocks of two nodes, further apart than the message took
      const std::string both =
          fmt::format(R"("cat": "message", "name": "{}", "id": "{}.{}.{}.{}.{}.{}")", name_of(payload),
                      first_step + static_cast<std::int64_t>(step), tail.pid, head.pid, payload, receiver, k);
      // An arrow ends inside the slice that it points to, and never before it begins.
      const std::int64_t begin = tail.times.start,
                         end = std::max({begin, head.times.start, head.times.end - 1});
      out.event(fmt::format(R"("ph": "s", {}, "pid": {}, "tid": {}, "ts": {})", both, tail.pid, tail.tid,
                            microseconds(begin - zero)));
      out.event(fmt::format(R"("ph": "f", "bp": "e", {}, "pid": {}, "tid": {}, "ts": {})", both, head.pid,
                            head.tid, microseconds(end - zero)));
    }
  }
}

}  // namespace

std::string chrome_begin(const std::string& device) {
  return fmt::format(
      "{{\"displayTimeUnit\": \"ms\", \"otherData\": {{\"device\": \"{}\"}}, \"traceEvents\": [\n", device);
}

std::string chrome_events(const Program& program, const std::vector<TracedRank>& ranks,
                          std::int64_t first_step, std::int64_t zero) {
  MP_CHECK(ranks.size() == program.ranks.size(), "a trace of {} ranks with {} lists", ranks.size(),
           program.ranks.size());
  ChromeWriter out;
  FlowEnds sends, receives;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const TracedRank& rank = ranks[place];
    const auto& list = program.ranks[place];
    for (const auto& times : rank.steps)
      MP_CHECK(times.size() == list.size(), "times of {} actions for a list of {}", times.size(),
               list.size());
    const Tracks tracks = tracks_of(list, rank.steps);
    out.give_name("process", rank.rank, 0, rank.name, rank.rank);
    for (int track = 0; track < static_cast<int>(tracks.names.size()); ++track)
      out.give_name("thread", rank.rank, track, tracks.names[track], track);
    write_sums(out, rank, static_cast<int>(tracks.names.size()), first_step, zero);
    for (std::size_t step = 0; step < rank.steps.size(); ++step) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Action& action = list[i];
        const Recorder::Times& times = rank.steps[step][i];
        const int thread = tracks.of[step][i], stage = static_cast<int>(place);
        const std::int64_t bytes = rank.bytes.empty() ? action.bytes : rank.bytes[i];
        if (action.kind == ActionKind::send)
          sends[{step, stage, action.peer, action.payload}].push_back({rank.rank, thread, times, bytes});
        if (action.kind == ActionKind::receive)
          receives[{step, action.peer, stage, action.payload}].push_back({rank.rank, thread, times, bytes});
        if (times.end == 0) continue;
        std::string args =
            fmt::format(R"("step": {}, "action": {})", first_step + static_cast<std::int64_t>(step), i);
        if (action.subnet != 0) args += fmt::format(R"(, "subnet": {})", action.subnet);
        args += details_of(action, bytes);
        out.slice(label_of(action), name_of(action.kind), rank.rank, thread, times, zero, args);
      }
    }
  }
  draw_arrows(out, sends, receives, first_step, zero);
  return out.take();
}

}  // namespace mindpipe
