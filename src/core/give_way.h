#pragma once
#include <sched.h>

#include <thread>

namespace mindpipe {

/// Whether this thread has a processor until it gives it up: at real-time priority, not among usual threads,
/// of which the system takes care, and where one that yields would hardly run beside busy ones.
inline bool keeps_its_processor() {
  const int policy = sched_getscheduler(0);
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

/// Lets other threads of the same priority run every now and then. It is called inside long work for which
/// nobody waits, with about how many microseconds there were since the last call.
inline void give_way(int microseconds = 1) {
  constexpr int most = 50;
  thread_local const bool is_asked = keeps_its_processor();
  thread_local int since = 0;
  since += microseconds;
  if (!is_asked || since < most) return;
  since = 0;
  std::this_thread::yield();
}

}  // namespace mindpipe
