#pragma once
#include <string>
#include <vector>

#include "app/run/injection.h"
#include "comm/mpi.h"
#include "core/clock.h"
#include "trace/step_trace.h"

namespace mindpipe {

/// This rank's clock as its trace has it, and how it compares with rank 0's. A skew that was asked for makes
/// it the clock of a host of its own.
class TraceClock {
 public:
  TraceClock();
  TraceClock(const std::vector<Injection>& injections, int rank);

  /// What the clock shows at a time of now_ns.
  std::int64_t shown(std::int64_t time) const;
  const std::string& host() const { return host_; }
  /// Compares the clocks of all hosts, before or behind the steps of a trace. Collective over the world.
  void compare(const World& world);
  const std::vector<Ping>& pings() const { return pings_; }

 private:
  std::string host_;
  std::int64_t zero_ = now_ns();
  double ahead_ = 0, rate_ = 0;
  std::vector<Ping> pings_;
};

}  // namespace mindpipe
