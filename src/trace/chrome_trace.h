#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program/action.h"
#include "trace/recorder.h"

namespace mindpipe {

/// One rank of a trace: its number, its name for people, and when its actions ran.
struct TracedRank {
  int rank = 0;
  std::string name;
  std::vector<std::vector<Recorder::Times>> steps;    ///< [step][action of its list], on the trace's clock
  std::vector<std::vector<Recorder::Sum>> sums = {};  ///< [step]; none where no product is shared
  std::vector<std::int64_t> bytes = {};  ///< bytes that each action moved; none: what the program says
};

/// Events of the Chrome trace format, which Perfetto and chrome://tracing read, with commas between them:
/// `ranks[i]` ran `program.ranks[i]`. A rank is a process, each of its queues a thread (or several, see
/// Tracks), its tensor sums one more; an action is one complete event, and an arrow (flow) leads from each
/// send to its receive, unless nothing was sent. `first_step` numbers steps[0]; `zero` is the clock's time 0.
std::string chrome_events(const Program& program, const std::vector<TracedRank>& ranks,
                          std::int64_t first_step, std::int64_t zero);

/// Text before the events of a file. `device` is what computed: "cpu: avx512, 2 threads", "emulated: h200".
std::string chrome_begin(const std::string& device);
/// Text behind the events of a file.
inline constexpr const char* chrome_end = "\n]}\n";

}  // namespace mindpipe
