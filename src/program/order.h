#pragma once
#include <string>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// One piece of work in a schedule: this kind of pass, of this chunk of the model, on this micro-batch.
struct Work {
  ActionKind kind = ActionKind::forward;
  int chunk = 0, micro_batch = 0;
  bool operator==(const Work&) const = default;
};
/// The work of every pipeline rank, in order. A schedule is a function that writes one.
using Order = std::vector<std::vector<Work>>;

/// All forwards, then all backwards. Chunk i on stage i.
Order gpipe_order(int stages, int micro_batches);
/// One forward, one backward: stage i runs p - i forwards ahead, and never holds more tapes than that.
Order one_forward_one_backward_order(int stages, int micro_batches);

/// 1f1b on `chunks` chunks a stage, chunk c on stage c mod p, micro-batches in groups of p. Other numbers of
/// micro-batches are padded to the next multiple of p in the order, and the missing work is left out.
Order interleaved_order(int stages, int chunks, int micro_batches);
/// All forwards of chunk 0, of chunk 1, ..., then the backwards of the last chunk, of the one before it, ...:
/// the gradients of a chunk are reduced while the next one computes.
Order breadth_first_order(int stages, int chunks, int micro_batches, const std::vector<int>& rank_of_chunk);
/// 1f1b with the backward in two halves: stage i keeps up to `lag` (i, left out) weight gradients back, to
/// fill the bubble with. Each shard's weight gradients are done before the next shard's first backward.
Order zero_bubble_order(int stages, int micro_batches, int micro_batches_of_shard, int lag = -1);

/// The schedule that the configuration names; `rank_of_chunk` has stages x chunks entries. Refuses what the
/// schedule cannot do.
Order make_order(const std::string& kind, int stages, int micro_batches, int micro_batches_of_shard,
                 const std::vector<int>& rank_of_chunk);

}  // namespace mindpipe
