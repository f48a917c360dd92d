#include "state/layout.h"

#include <sched.h>

#include <algorithm>
#include <bit>

#include "core/tensor.h"
#include "layers/layer.h"

namespace mindpipe {

Coord degrees_of(const Config& config) {
  return {config.grid.tensor, config.grid.data, config.grid.pipeline, config.grid.supernet};
}

Layout make_layout(const Config& config, const Coord& coord) {
  Layout layout;
  layout.grid = degrees_of(config);
  layout.coord = coord;
  layout.tensor_shards = config.reproducible.tensor;
  layout.data_shards = config.reproducible.data;
  layout.batch = config.train.batch;
  layout.samples = config.train.micro_batch;
  layout.sequence = config.data.sequence;
  check_degree(Axis::tensor, layout.tensor_shards, layout.grid.tensor);
  check_degree(Axis::data, layout.data_shards, layout.grid.data);
  MP_REQUIRE(
      layout.batch % (layout.data_shards * layout.samples) == 0, Exit::bad_configuration,
      "train.batch is {}, which {} logical data shards of micro-batches of {} do not divide; the nearest "
      "that fits is {}",
      layout.batch, layout.data_shards, layout.samples,
      (layout.batch / (layout.data_shards * layout.samples) + 1) * layout.data_shards * layout.samples);
  MP_REQUIRE(layout.sequence % layout.tensor_shards == 0, Exit::bad_configuration,
             "data.sequence is {}, which {} logical tensor shards do not divide; the nearest that fits is {}",
             layout.sequence, layout.tensor_shards,
             (layout.sequence / layout.tensor_shards + 1) * layout.tensor_shards);
  return layout;
}

int threads_of(const Config& config) {
  if (config.device.threads > 0) return config.device.threads;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

DType compute_dtype(const Config& config) { return row_of(config.train.precision).dtype; }

std::int64_t token_chunk(const Config& config) {
  if (!row_of(config.device.kind).wants_many_rows) return usual_token_chunk;
  // A GPU is filled by products of many rows, and with every chunk the table's whole gradient is read and
  // written.
  constexpr std::int64_t most_bytes_of_logits = std::int64_t{512} << 20, most_tokens = 8192;
  const auto fitting =
      static_cast<std::uint64_t>(most_bytes_of_logits / (std::int64_t{4} * config.model.vocabulary));
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(fitting)), usual_token_chunk, most_tokens);
}

}  // namespace mindpipe
