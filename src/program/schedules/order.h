#pragma once
#include <array>
#include <vector>

#include "config/groups.h"
#include "config/kinds.h"
#include "program/action.h"

namespace mindpipe {

/// One piece of work in a schedule: this kind of pass, of this chunk of the model, on this micro-batch.
struct Pass {
  ActionKind kind = ActionKind::forward;
  int chunk = 0, micro_batch = 0;
  /// The pass of stage 0 as a stage has it, where chunks lie round the stages.
  Pass on(int stage) const { return {kind, chunk + stage, micro_batch}; }
  bool operator==(const Pass&) const = default;
};
/// The work of every pipeline rank, in order. A schedule is a function that writes one.
using Order = std::vector<std::vector<Pass>>;

/// What a schedule is to order: micro-batches on stages x chunks pieces of the model.
struct OrderRequest {
  int stages = 1, micro_batches = 1;
  int chunks = 1;                       ///< chunks of the model on each stage
  std::vector<int> rank_of_chunk = {};  ///< stages x chunks entries; empty: chunk c on stage c mod stages
  MicroBatchGroups groups = {};         ///< where the schedule has groups; empty: one of all micro-batches

  int rank_of(int chunk) const { return rank_of_chunk.empty() ? chunk % stages : rank_of_chunk[chunk]; }
};

/// How far apart the passes of a V stand: as if each of a chunk took one unit of time and its three passes of
/// two chunks came round every six. `forward`, `backward`: from a chunk to the next one on the way, down the
/// stages and up again, the way of a micro-batch's backward beginning with the chunks that go down again.
/// `turn`: from the forward at the bottom to the one above it, from the last forward to its backward, and
/// from the backward at the bottom to the next.
struct VPattern {
  std::array<int, 2> forward, backward;
  std::array<int, 3> turn;
};
/// The patterns of a V, a pass on the way at most five units of time behind the one before, in which no stage
/// has two passes at one time.
std::vector<VPattern> all_patterns();
/// The passes of each stage in the order in which they stand in the pattern.
Order order_in_v(const OrderRequest& request, const VPattern& pattern);

// gpipe_order, one_forward_one_backward_order, ...: every schedule of config/kinds.h, each in its own file.
#define MINDPIPE_DECLARE_ORDER(schedule, ...) Order schedule##_order(const OrderRequest& request);
MINDPIPE_STEP_SCHEDULES(MINDPIPE_DECLARE_ORDER)
#undef MINDPIPE_DECLARE_ORDER

/// The passes of one kind on stage 0, where chunk c lies on stage c mod stages: group after group of
/// micro-batches; in a group chunk after chunk, backwards from the last; in a chunk micro-batch after
/// micro-batch. No groups: one of all.
std::vector<Pass> passes_in_groups(ActionKind kind, const std::vector<int>& groups,
                                   const OrderRequest& request);

/// Groups that an elastic schedule can have, as near as possible to those asked for.
std::vector<int> nearest_groups(const std::vector<int>& groups, int stages, int micro_batches);
/// Refuses groups that do not add up to the micro-batches of a rank, or are smaller than the pipeline.
void require_groups(const MicroBatchGroups& groups, int stages, int micro_batches);

/// The order of a schedule: forwards and whole backwards. Refuses what the schedule cannot do.
Order make_order(ScheduleKind schedule, const OrderRequest& request);

}  // namespace mindpipe
