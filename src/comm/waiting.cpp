#include "comm/waiting.h"

#include <chrono>
#include <thread>

#include "comm/watchdog.h"

namespace mindpipe {
namespace {

// A wait that is so long is worth a line in the watchdog's sentence.
constexpr std::int64_t long_wait_ns = 20 * 1000 * 1000;
// Most ranks that are late at first come in this time: the line then names those that are still missing.
constexpr std::int64_t describe_again_ns = 250 * 1000 * 1000;

}  // namespace

void Waiting::look() {
  if (!hook_ || in_hook_) return;
  in_hook_ = true;  // an operation inside the hook may come by here again
  hook_();
  in_hook_ = false;
}

void Waiting::pause(Turn& turn, const Describe& describe) {
  look();
  ++turn.count;
  if (crowded_ && turn.count > spins_) {
    const int microseconds = turn.count < spins_ + 20 ? 50 : longest_sleep_us_;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  if (watchdog_ == nullptr) return;
  const std::int64_t now = now_ns();
  if (now - turn.start < long_wait_ns || now - turn.described < describe_again_ns) return;
  watchdog_->begin_wait(describe(), turn.start);
  turn.described = now;
}

void Waiting::until_time(std::int64_t end_ns) {
  constexpr std::int64_t awake_ns = 60'000, shortest_ns = 400'000, longest_ns = 1'000'000;
  for (std::int64_t left = end_ns - now_ns(); left > 0; left = end_ns - now_ns()) {
    look();
    if (left > awake_ns + 40'000)
      std::this_thread::sleep_for(std::chrono::nanoseconds(
          std::min(left - awake_ns, std::clamp<std::int64_t>(left / 4, shortest_ns, longest_ns))));
    else std::this_thread::yield();
  }
}

void Waiting::blocked(const Describe& describe, const std::function<void()>& call) {
  const std::int64_t start = now_ns();
  if (watchdog_ != nullptr) watchdog_->begin_wait(describe(), start);
  call();
  if (watchdog_ != nullptr) watchdog_->end_wait();
  seconds_ += seconds_since(start);
}

void Waiting::ended(const Turn& turn) {
  if (turn.described != 0) watchdog_->end_wait();
  seconds_ += seconds_since(turn.start);
}

}  // namespace mindpipe
