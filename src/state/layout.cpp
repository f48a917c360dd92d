#include "state/layout.h"

#include <sched.h>

#include <algorithm>

#include "config/config.h"
#include "core/tensor.h"

namespace mindpipe {

Coord degrees_of(const GridConfig& grid) { return {grid.tensor, grid.data, grid.pipeline, grid.supernet}; }

Layout make_layout(const Config& config, const Coord& coord) {
  Layout layout;
  layout.grid = degrees_of(config.grid);
  layout.coord = coord;
  layout.tensor_shards = config.reproducible.tensor;
  layout.data_shards = config.reproducible.data;
  layout.batch = config.train.batch;
  layout.samples = config.train.micro_batch;
  check_degree(Axis::tensor, layout.tensor_shards, layout.grid.tensor);
  check_degree(Axis::data, layout.data_shards, layout.grid.data);
  MP_REQUIRE(
      layout.batch % (layout.data_shards * layout.samples) == 0, Exit::bad_configuration,
      "train.batch is {}, which {} logical data shards of micro-batches of {} do not divide; the nearest "
      "that fits is {}",
      layout.batch, layout.data_shards, layout.samples,
      (layout.batch / (layout.data_shards * layout.samples) + 1) * layout.data_shards * layout.samples);
  return layout;
}

int threads_of(const DeviceConfig& device) {
  if (device.threads > 0) return device.threads;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

DType compute_dtype(const TrainConfig& train) { return row_of(train.precision).dtype; }

}  // namespace mindpipe
