#include "comm/waiting.h"

#include <chrono>
#include <thread>

#include "comm/watchdog.h"

namespace mindpipe {
namespace {

constexpr std::int64_t long_wait_ns = 20 * 1000 * 1000;  // a wait that is worth a line in the watchdog's sentence

}  // namespace

void Waiting::pause(Turn& turn, const Describe& describe) {
  if (hook_ && !in_hook_) {
    in_hook_ = true;  // an operation of the hook's own may come by here again
    hook_();
    in_hook_ = false;
  }
  ++turn.count;
  if (crowded_ && turn.count > spins_) {
    const int microseconds = turn.count < spins_ + 20 ? 50 : longest_sleep_us_;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  if (watchdog_ != nullptr && !turn.described && now_ns() - turn.start > long_wait_ns) {
    watchdog_->waits_for(describe());
    turn.described = true;
  }
}

void Waiting::ended(const Turn& turn) {
  if (turn.described) watchdog_->waits_for("");
  seconds_ += seconds_since(turn.start);
}

}  // namespace mindpipe
