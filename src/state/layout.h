#pragma once
#include <cstdint>

#include "comm/grid.h"
#include "core/sum_tree.h"
#include "core/tensor.h"

namespace mindpipe {

struct Config;
struct DeviceConfig;
struct GridConfig;
struct TrainConfig;

/// Who this rank is, and how a step's batch is divided: logical data shard after logical shard, micro-batch
/// after micro-batch.
struct Layout {
  Coord grid{1, 1, 1, 1}, coord;
  int tensor_shards = 1, data_shards = 1;  ///< logical: constants of the run
  int batch = 1, samples = 1;              ///< samples of a step; of a micro-batch

  /// The rank of a program that this one runs.
  int program_rank() const { return program_rank_at(grid, coord); }
  int local_data_shards() const { return data_shards / grid.data; }
  /// The sums over logical data shards, as this rank sees them.
  SumTree data_tree() const { return SumTree(data_shards, grid.data, coord.data); }
  int micro_batches() const {
    return batch / (grid.data * samples);
  }  ///< micro-batches of this rank in a step
  /// The first sample, within the step's batch, of this rank's micro-batch.
  std::int64_t first_sample(int micro_batch) const {
    return static_cast<std::int64_t>(batch / grid.data) * coord.data +
           static_cast<std::int64_t>(micro_batch) * samples;
  }
};

/// The degrees that a configuration says; 0 where it says auto.
Coord degrees_of(const GridConfig& grid);
/// The layout of the rank at `coord`, from a resolved configuration whose degrees are all known.
Layout make_layout(const Config& config, const Coord& coord);

DType compute_dtype(const TrainConfig& train);
/// How many threads a rank's kernels have: as many as said, or as the rank may use processors.
int threads_of(const DeviceConfig& device);

}  // namespace mindpipe
