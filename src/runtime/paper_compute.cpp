#include "runtime/paper_compute.h"

#include <algorithm>

#include "core/clock.h"

namespace mindpipe {

std::int64_t PaperCompute::sums_of(const Script& script, int index) const {
  const Action& action = script.list[index];
  if (!is_pass(action) || network_ == nullptr) return 0;
  return std::min(script.pacer.time_of(index), network_->tensor_time(action));
}

ComputeTimes PaperCompute::last(Script& script, int index, const ComputeTimes& called, std::int64_t longer) {
  const Action& action = script.list[index];
  ComputeTimes ran{called.start, 0, called.inside, called.start};
  if (imitates_) ran.start = ran.posted = std::max(script.pacer.ready(action, index), free_ns_);
  if (imitates_ && is_communication(action)) ran.start = std::max(ran.start, called.end);
  const Load load = load_of(script, index);
  const std::int64_t lasts = script.pacer.time_of(index) + longer;
  ran.end = ran.start;
  const int turns = load.takes > 0 ? load.turns(load.takes) : 1;
  for (int turn = 0; turn < turns; ++turn) {
    ran.end += load.before_turn(turn, turns, lasts);
    waiting_.until_time(ran.end);
    if (load.takes > 0)
      ran.end = passes_ports(load.level, of_turn(turn, turns, load.takes), ran.end) +
                of_turn(turn, turns, load.latency);
  }
  waiting_.until_time(ran.end);
  if (is_pass(action) && network_ != nullptr)
    ran.inside = ran.end - ran.start - lasts + sums_of(script, index);
  free_ns_ = ran.end;
  script.pacer.end(index, ran.end);
  return ran;
}

/// What the sums inside a pass ask of ports, where they can meet others.
Load PaperCompute::load_of(const Script& script, int index) const {
  const Action& action = script.list[index];
  const Outline& outline = script.outline;
  if (ports_ == nullptr || !is_pass(action) || action.sums == 0 ||
      !network_->tensor_meets(outline.ranks() > 1, outline.data > 1))
    return {};
  return network_->tensor_load({action.sums, action.bytes}, script.pacer.time_of(index));
}

/// A turn of sums leaves this rank for itself, as the ranks that share its products are alike.
std::int64_t PaperCompute::passes_ports(Level level, std::int64_t takes, std::int64_t offered) {
  constexpr int itself = -1;
  const PaperPorts::Number leaves = ports_->offer(level, TrafficClass::tensor, itself, takes, offered);
  std::optional<PaperPorts::Number> comes;
  std::optional<std::int64_t> arrived;
  waiting_.until(
      [&] {
        move_others_();
        ports_->serve(now_ns());
        if (const auto begun = ports_->take_begun(leaves))
          comes = ports_->expect(level, TrafficClass::tensor, itself, begun->first, begun->second);
        if (comes && !arrived) arrived = ports_->take_arrived(*comes);
        return arrived.has_value();
      },
      [] { return std::string("the ports that tensor sums pass"); });
  return *arrived;
}

}  // namespace mindpipe
