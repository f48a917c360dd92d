#include "state/scalar_bytes.h"

#include <algorithm>

namespace mindpipe {

ScalarBytes scalar_bytes(const Layout& layout, const DecisionScopes& of_step, bool sharded,
                         const std::optional<SquaresSize>& squares) {
  const auto exchanged = [](int shards, int ranks, std::int64_t count) {
    return Communicator::scalars_bytes(SumTree(shards, ranks), count);
  };
  const Coord& ranks = layout.grid;
  const std::int64_t tensors = of_step.empty() ? 0 : of_step.at(all_units).tensors,
                     chunks = sharded ? most_chunks(of_step) : 1;
  ScalarBytes bytes{.kept = LossSums::bytes(layout),
                    .tensor_exchange = exchanged(layout.tensor_shards, ranks.tensor, tensors),
                    .data_exchange = std::max(exchanged(layout.data_shards, ranks.data, 1),
                                              exchanged(ranks.data, ranks.data, chunks)),
                    .pipeline_exchange = exchanged(ranks.pipeline, ranks.pipeline, 1 + tensors)};
  if (!of_step.empty()) bytes.kept += Decisions::bytes(of_step, layout.tensor_shards / ranks.tensor, tensors);
  if (!squares) return bytes;
  const std::int64_t of_rows = (squares->shards + 1) * squares->tensors,
                     over_data = std::max<std::int64_t>(layout.data_shards, sharded ? squares->chunks : 0);
  bytes.kept += ShardSquares::bytes(*squares, layout);
  bytes.tensor_exchange =
      std::max(bytes.tensor_exchange, exchanged(layout.tensor_shards, ranks.tensor, of_rows));
  bytes.data_exchange = std::max(bytes.data_exchange, exchanged(ranks.data, ranks.data, over_data));
  bytes.pipeline_exchange =
      std::max(bytes.pipeline_exchange, exchanged(ranks.pipeline, ranks.pipeline, of_rows));
  return bytes;
}

}  // namespace mindpipe
