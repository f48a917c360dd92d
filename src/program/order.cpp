#include "program/order.h"

#include "core/check.h"

namespace mindpipe {

Order make_order(const std::string& kind, int stages, int micro_batches, int micro_batches_of_shard,
                 const std::vector<int>& rank_of_chunk) {
  const int chunks = static_cast<int>(rank_of_chunk.size()) / stages;
  const bool several = kind == "interleaved" || kind == "breadth-first";
  MP_REQUIRE(several || chunks == 1, Exit::bad_configuration,
             "schedule.chunks is {}, but schedule {} runs one chunk on each stage (set schedule.chunks to 1, "
             "or take interleaved or "
             "breadth-first)",
             chunks, kind);
  for (int chunk = 0; chunk < stages * chunks; ++chunk)
    MP_REQUIRE(kind == "breadth-first" || rank_of_chunk[chunk] == chunk % stages, Exit::bad_configuration,
               "schedule {} needs chunk {} on stage {}, not {} (only breadth-first runs on a V placement)",
               kind, chunk, chunk % stages, rank_of_chunk[chunk]);
  if (kind == "gpipe") return gpipe_order(stages, micro_batches);
  if (kind == "1f1b") return one_forward_one_backward_order(stages, micro_batches);
  if (kind == "interleaved") return interleaved_order(stages, chunks, micro_batches);
  if (kind == "breadth-first") return breadth_first_order(stages, chunks, micro_batches, rank_of_chunk);
  if (kind == "zb-h1") return zero_bubble_order(stages, micro_batches, micro_batches_of_shard);
  fail(Exit::bad_configuration,
       "schedule.kind is '{}' (it can be gpipe, 1f1b, interleaved, breadth-first or zb-h1)", kind);
}

}  // namespace mindpipe
