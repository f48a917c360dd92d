#pragma once
#include <cstdint>
#include <vector>

namespace mindpipe {

/// Exchanges between the ranks that share a product, inside a pass: how many, and the bytes that this rank
/// sends in them.
struct TensorSums {
  int calls = 0;
  std::int64_t bytes = 0;
  bool operator==(const TensorSums&) const = default;
};

/// What one block costs on one rank, for one micro-batch: times in nanoseconds, sizes in bytes of this rank's
/// part.
struct BlockCost {
  std::int64_t forward = 0, backward = 0;
  std::int64_t backward_input = 0, backward_weight = 0;  ///< backward in two halves
  TensorSums forward_sums, backward_sums;  ///< the latter in the input's half when the backward is split
  std::int64_t update = 0;
  std::int64_t clear = 0;   ///< zeroing its accumulators
  std::int64_t saved = 0;   ///< bytes that its forward keeps for its backward
  std::int64_t values = 0;  ///< bytes of parameters in the compute precision; 0: nothing to reduce or update
  std::int64_t gradients = 0;       ///< bytes of one gradient accumulator of each parameter (f32)
  std::int64_t sequence_parts = 0;  ///< bytes of the accumulators for T-ths of the sequence beside it
  std::int64_t optimizer = 0;       ///< bytes of masters and moments
  std::int64_t workspace = 0;
};

/// Bytes that cross a cut for one micro-batch; 0: this payload does not cross.
struct BoundaryBytes {
  std::int64_t activation = 0, memory = 0, gradient = 0, memory_gradient = 0;
  bool operator==(const BoundaryBytes&) const = default;
};

/// One table with several uses: the blocks that use it, in model order, and the bytes of one use's gradient.
struct TiedTable {
  std::vector<int> blocks;
  std::int64_t bytes = 0;
};

/// Where chunk c lives: `loop`: on rank c mod p; `v`: forth and back again, so that first and last chunk
/// share a rank.
enum class ChunkPlacement : std::uint8_t { loop, v };

/// All that a schedule knows of a step. Chunk c is the blocks [first_block[c], first_block[c + 1]).
struct Outline {
  int stages = 1;         ///< pipeline ranks, p
  int chunks = 1;         ///< of the model for each stage, v
  int micro_batches = 1;  ///< of a rank in a step, m
  int shards = 1;         ///< logical data shards of a rank; divides micro_batches
  int data = 1;           ///< degree of the data axis, d
  bool sharded_optimizer = false;
  bool sharded_gradients =
      false;             ///< too: whole ones live from a block's first backward to their sum over data
  bool training = true;  ///< false: an evaluation, forwards and the scalars only
  ChunkPlacement placement = ChunkPlacement::loop;
  std::vector<int> first_block;  ///< stages x chunks + 1 entries
  std::vector<BlockCost> blocks;
  std::vector<BoundaryBytes> cuts;  ///< cuts[b] lies before block b; cuts[0] is not used
  std::vector<TiedTable> tied;

  int all_chunks() const { return stages * chunks; }
  int rank_of(int chunk) const {
    const int row = chunk / stages, column = chunk % stages;
    return placement == ChunkPlacement::v && row % 2 == 1 ? stages - 1 - column : column;
  }
  int chunk_of(int block) const {
    int chunk = 0;
    while (first_block[chunk + 1] <= block) ++chunk;
    return chunk;
  }
  int micro_batches_of_shard() const { return micro_batches / shards; }
  /// All that the backwards of a block add to: gradients, T-ths of the sequence, and the binary counter over
  /// the rank's shards.
  std::int64_t accumulator_bytes(int block) const {
    int accumulators = 1;
    while ((1 << (accumulators - 1)) < shards) ++accumulators;
    return blocks[block].gradients * accumulators + blocks[block].sequence_parts;
  }
};

}  // namespace mindpipe
