#pragma once
#include <string>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// One piece of work in a schedule: this kind of pass, of this chunk of the model, on this micro-batch.
struct Work {
  Kind kind = Kind::forward;
  int chunk = 0, micro_batch = 0;
  bool operator==(const Work&) const = default;
};
/// The work of every pipeline rank, in order. A schedule is a function that writes one.
using Order = std::vector<std::vector<Work>>;

/// All forwards, then all backwards. Chunk i on stage i.
Order gpipe_order(int stages, int micro_batches);
/// One forward, one backward: stage i runs p - i forwards ahead, and never holds more tapes than that.
Order one_forward_one_backward_order(int stages, int micro_batches);

}  // namespace mindpipe
