#include "app/train/trace_clock.h"

#include <cmath>

#include "comm/gather_bytes.h"
#include "comm/pings.h"

namespace mindpipe {

TraceClock::TraceClock() : host_(host_name()) {}

TraceClock::TraceClock(const std::vector<Injection>& injections, int rank) : TraceClock() {
  for (const Injection& injection : injections) {
    if (injection.kind != FaultKind::skew || injection.rank != rank) continue;
    ahead_ += injection.seconds * 1e9;
    rate_ += injection.ppm * 1e-6;
    host_ += fmt::format(".skewed-{}", rank);
  }
}

std::int64_t TraceClock::shown(std::int64_t time) const {
  return time + std::llround(ahead_ + rate_ * static_cast<double>(time - zero_));
}

void TraceClock::compare(const World& world) {
  for (const PingTimes& ping :
       ping_hosts(world, exchange_texts(world, host_), [this] { return shown(now_ns()); }))
    pings_.push_back({ping[0], ping[1], ping[2], ping[3]});
}

}  // namespace mindpipe
