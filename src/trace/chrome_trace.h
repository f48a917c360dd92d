#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trace/kept_actions.h"

namespace mindpipe {

/// One rank of a trace.
struct TracedRank {
  int rank = 0;
  std::string name;                     ///< for people
  int replica = 0;                      ///< number among the ranks that run the same list
  int place = 0;                        ///< among the program's ranks
  std::string peers = "stage";          ///< what the program's ranks are called
  std::vector<KeptAction> actions;      ///< in the order of its list, run behind run, on the trace's clock
  std::vector<KeptSum> sums = {};       ///< between the ranks that share a product
  std::vector<std::string> units = {};  ///< names of the model's
};

/// Events of the Chrome trace format, which Perfetto and chrome://tracing read, with commas between them: one
/// rank's alone. A rank is a process, each of its queues a thread (or several, see Tracks), its tensor sums
/// one more; an action that has ended is one complete event. Each names its step, its subnet or its window;
/// passes and updates of subnets name their units with the versions that they saw, and what moves units names
/// them and the other rank of the program. An arrow (flow) leads from each send to its receive, unless
/// nothing was sent: both ends say which arrow is theirs, so that no rank has to know another's times. `zero`
/// is the clock's time 0.
std::string chrome_events(const TracedRank& rank, std::int64_t zero);

/// Text before the events of a file. `device` is what computed: "cpu: avx512, 2 threads", "emulated: h200".
std::string chrome_begin(const std::string& device);
/// Text behind the events of a file.
inline constexpr const char* chrome_end = "\n]}\n";

}  // namespace mindpipe
