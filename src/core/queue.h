#pragma once
#include <cstdint>

namespace mindpipe {

/// The queues of a rank, on a device as in its list of actions; each is strictly first in, first out.
/// Messages that arrive and messages that leave do not wait for each other; long transfers have a queue of
/// their own, and so have copies between a device's memory and the host's.
enum class Queue : std::uint8_t { compute, copy_in, copy_out, receive, bulk, send };
inline constexpr int queue_count = 6;

/// The word for a queue in listings and traces.
constexpr const char* name_of(Queue queue) {
  switch (queue) {
    case Queue::compute:
      return "compute";
    case Queue::copy_in:
      return "copy_in";
    case Queue::copy_out:
      return "copy_out";
    case Queue::receive:
      return "receive";
    case Queue::bulk:
      return "bulk";
    case Queue::send:
      return "send";
  }
  return "?";
}

}  // namespace mindpipe
