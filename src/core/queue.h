#pragma once
#include "core/kinds.h"

namespace mindpipe {

/// The queues of a rank, on a device as in its list of actions; each is strictly first in, first out.
/// Messages that arrive and messages that leave do not wait for each other; long transfers have a queue of
/// their own, and so have copies between a device's memory and the host's.
#define MINDPIPE_QUEUES(kind)                                                                           \
  kind(compute, "compute") kind(copy_in, "copy_in") kind(copy_out, "copy_out") kind(receive, "receive") \
      kind(bulk, "bulk") kind(send, "send")
MINDPIPE_KINDS(Queue, NamedRow, MINDPIPE_QUEUES)
inline constexpr int queue_count = std::size(Queue_rows);

}  // namespace mindpipe
