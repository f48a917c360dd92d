#pragma once
#include <thread>

namespace mindpipe {

/// Lets other threads of the same priority run every now and then. It is called inside long work for which
/// nobody waits, with about how many microseconds there were since the last call.
inline void give_way(int microseconds = 1) {
  constexpr int most = 50;
  thread_local int since = 0;
  since += microseconds;
  if (since < most) return;
  since = 0;
  std::this_thread::yield();
}

}  // namespace mindpipe
