#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/bulk_parts.h"

namespace mindpipe {

/// Exchanges inside a pass between the ranks that share a product: how many, and the bytes this rank sends.
struct TensorSums {
  int calls = 0;
  std::int64_t bytes = 0;
  void operator+=(const TensorSums& more) {
    calls += more.calls;
    bytes += more.bytes;
  }
  void operator-=(const TensorSums& less) {
    calls -= less.calls;
    bytes -= less.bytes;
  }
  bool operator==(const TensorSums&) const = default;
};

/// What one candidate of a block costs on one rank, for one micro-batch: times in nanoseconds, sizes in bytes
/// of this rank's part. Parameters are counted by unit (UnitCost).
struct BlockCost {
  std::int64_t forward = 0, backward = 0;
  std::int64_t backward_input = 0, backward_weight = 0;  ///< backward in two halves
  TensorSums forward_sums, backward_sums;  ///< the latter in the input's half when the backward is split
  std::int64_t saved = 0;                  ///< bytes that its forward keeps for its backward
  std::int64_t split_only = 0;             ///< bytes of `saved` that a whole backward would not keep
  std::int64_t put_off = 0;  ///< bytes that a backward in halves keeps more, from the first to the second
  std::int64_t workspace = 0;
  /// The time of its passes, where backwards are whole.
  std::int64_t passes() const { return forward + backward; }
  /// What this costs more than another; a workspace is had in turn.
  void operator-=(const BlockCost& less) {
    forward -= less.forward;
    backward -= less.backward;
    backward_input -= less.backward_input;
    backward_weight -= less.backward_weight;
    forward_sums -= less.forward_sums;
    backward_sums -= less.backward_sums;
    saved -= less.saved;
    split_only -= less.split_only;
    put_off -= less.put_off;
  }
};

/// One use of a unit: the block that reads its values and adds to its gradient, in accumulators of its own.
struct UnitUse {
  int unit = 0, block = 0;
  auto operator<=>(const UnitUse&) const = default;
};

/// Which gradients of its blocks' parameters a pass makes: none, all, or (a backward in two halves) those
/// made at once or those that were put off.
enum class MadeGradients : std::uint8_t { none, all, at_once, later };

/// What a unit, the parameters that travel as one, costs on one rank: bytes of its part, and nanoseconds.
struct UnitCost {
  std::int64_t values = 0;          ///< parameters in the compute precision; 0: nothing to sum or update
  std::int64_t gradients = 0;       ///< one gradient accumulator of each parameter (f32), of one use
  std::int64_t share = 0;           ///< the largest share of one data rank; 0: about an equal share
  std::int64_t sequence_parts = 0;  ///< the accumulators for T-ths of the sequence beside it, of one use
  std::int64_t state = 0;           ///< masters and moments
  std::int64_t clear = 0;           ///< time to zero the accumulators of one use
  std::int64_t update = 0;          ///< time
  int tensors = 0;                  ///< tensors whose squares a decision about it adds up
  std::int64_t moved = 0;           ///< bytes of its state in a move: a rank's masters, moments, counters
  std::int64_t move = -1;           ///< nanoseconds, where a table prices it; -1: as long as its bytes take
  std::vector<int> blocks;          ///< blocks that use it, in model order
  bool shared = false;  ///< by all subnets of a supernet: it follows the rule of windows, not that of owners
};

/// A number of a subnet's choice that a block depends on, and where its candidates stand among the block's.
struct BlockPart {
  int place = 0, first = 0, count = 1;
};

/// Bytes that cross a cut for one micro-batch; 0: this payload does not cross.
struct BoundaryBytes {
  std::int64_t activation = 0, encoder_output = 0, gradient = 0, encoder_output_gradient = 0;
  bool operator==(const BoundaryBytes&) const = default;
};

/// Units whose state is on the device at a time, at most, where it is kept in the host's memory.
inline constexpr int state_slots = 2;

/// Chunk c on rank c mod p.
std::vector<int> looped_chunks(int stages, int chunks);
/// Down the ranks and up again, so that first and last chunk share a rank where chunks are even.
std::vector<int> v_shaped_chunks(int stages, int chunks);

/// All that a schedule knows of a step. Chunk c is the blocks [first_block[c], first_block[c + 1]).
struct Outline {
  int stages = 1;         ///< stages of the pipeline, p
  bool own_cuts = false;  ///< supernet: each subnet has a cut of its own
  int lanes = 1;          ///< supernet: pipelines side by side, s; subnet j runs in lane j mod s
  int chunks = 1;         ///< chunks of the model for each stage, v
  int micro_batches = 1;  ///< micro-batches of a rank in a step, m
  int shards = 1;         ///< logical data shards of a rank; divides micro_batches
  int data = 1;           ///< degree of the data axis, d
  int tensor = 1;         ///< degree of the tensor axis, t
  bool sharded_optimizer = false;
  bool state_on_host = false;      ///< masters and moments come to the device for updates alone
  bool sharded_gradients = false;  ///< too: whole ones live from a use's first backward to its sum over data
  bool training = true;            ///< false: forwards alone
  /// Percent of 1f1b's largest tapes that a schedule which puts weight gradients off may have; 0: as many as
  /// are the schedule's own.
  int tapes_percent = 0;
  /// Bytes that the stage with the most memory left has for tapes of such a schedule, 0: nobody has asked;
  /// and by how much fewer each stage may have than the schedule, none: all alike.
  std::int64_t tapes_limit = 0;
  std::vector<std::int64_t> fewer_tapes = {};
  std::int64_t fewer_tapes_of(int stage) const { return fewer_tapes.empty() ? 0 : fewer_tapes[stage]; }
  /// Bytes of a part of sums, gathers, exchanges and moves, alike on all ranks.
  std::int64_t part_bytes = most_part_bytes;
  std::vector<int> rank_of_chunk;  ///< stages x chunks entries
  std::vector<int> first_block;    ///< stages x chunks + 1 entries
  /// The first blocks in the step behind a moving one, whose blocks change their stage; empty: the cut stays.
  std::vector<int> next_first_block = {};
  std::vector<std::vector<BlockCost>>
      blocks;  ///< [block][candidate]; a plain block has one; of a block with
               ///< several parts, of which it is one each, one after the other
  std::vector<std::vector<std::vector<int>>> units_used;  ///< [block][candidate]: units, ascending
  std::vector<UnitCost> units;
  /// For each block, the parts of a subnet's choice that it depends on; empty: every block has its own place.
  std::vector<std::vector<BlockPart>> parts_of;
  /// For each block whether its part of a tape waits on the host between forward and backward; empty: none.
  std::vector<char> swapped = {};
  std::vector<BoundaryBytes> cuts;  ///< cuts[b] lies before block b; cuts[0] is not used
  std::vector<double> slower;       ///< times as long as said passes and updates take on each stage; empty: 1
  /// Whether a table of prices was measured: the price of a pass has its tensor sums in it and the zeroing of
  /// gradients, that of an update what is exchanged to decide about it.
  bool prices_are_whole = false;

  /// Whether units travel, because the next user may run on another rank.
  bool has_moves() const { return lanes > 1 || own_cuts; }
  /// Ranks of a program: rank = lane x stages + stage. A model that is no supernet has one lane.
  int ranks() const { return lanes * stages; }
  int stage_of_rank(int rank) const { return rank % stages; }
  int lane_of_rank(int rank) const { return rank / stages; }
  /// The rank on which a subnet runs what its cut gives a stage.
  int rank_of_subnet(std::int64_t subnet, int stage) const {
    return static_cast<int>(subnet % lanes) * stages + stage;
  }
  /// How long on a stage that takes which is said to take `time`.
  std::int64_t lasting(int stage, std::int64_t time) const {
    return slower.empty() ? time : std::llround(static_cast<double>(time) * slower[stage]);
  }
  int all_chunks() const { return stages * chunks; }
  int all_blocks() const { return static_cast<int>(blocks.size()); }
  int rank_of(int chunk) const { return rank_of_chunk[chunk]; }
  int chunk_of(int block) const;
  int rank_of_block(int block) const { return rank_of(chunk_of(block)); }
  int micro_batches_of_shard() const { return micro_batches / shards; }

  const BlockCost& cost(int block, int candidate = 0) const { return blocks[block][candidate]; }
  /// Appends a block of one candidate that uses these units, which stand in `units`.
  void add_block(const BlockCost& cost, const std::vector<int>& used);
  /// The uses in blocks [first, last) of units that have parameters, block by block: of all candidates, each
  /// unit once.
  std::vector<UnitUse> uses_in(int first, int last) const;
  /// The ranks on which a unit has users, ascending: each holds its values and updates them.
  std::vector<int> homes_of(int unit) const;
  /// The homes of a unit in all lanes, as ranks of a program: who holds what subnets share, and adds to it.
  std::vector<int> ranks_of(int unit) const;
  /// The units with parameters of which `rank` is a home, ascending.
  std::vector<int> units_of_rank(int rank) const;
  /// Whether a step moves blocks to other stages.
  bool moves_blocks() const { return !next_first_block.empty(); }
};

}  // namespace mindpipe
