#pragma once
#include <utility>
#include <vector>

#include "state/stage.h"

namespace mindpipe {

/// Numbers [begin, end) that are added up, for each sum.
using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;
/// Spans as a table (i32 [spans, 2]) in an arena.
Tensor take_spans(Backend& backend, Arena& arena, const Spans& spans);

/// Losses of a step's whole batch.
std::int64_t targets_of_step(const Stage& stage);
/// Losses of a rank's micro-batches: [micro_batches, samples, targets].
Shape losses_shape(const Stage& stage);

/// Losses of a batch, added up on the device in one fixed order, and the hits of an evaluation. Nothing here
/// waits for the device, or brings a number to the host.
class LossSums {
 public:
  LossSums(Stage& stage, Communicator& data);
  static std::size_t bytes(const Layout& layout);

  /// Writes the sum over the whole batch of losses [micro_batches, samples, targets] to `sum` (f64 [1]). A
  /// rank without the head has none. Collective over data.
  void sum_over_data(const Tensor& losses, const Tensor& sum);
  /// Where the head of an evaluation counts: f64 [Hits::places].
  Tensor hits() const { return evaluation_.range(of_data_shards_.count(), Hits::places); }
  /// Forgets all hits.
  void begin_evaluation() { backend_.fill({evaluation_, 0}); }
  /// On a rank that has the head: the sum of the losses of each of its data shards, and behind them its hits
  /// since the evaluation began.
  const Tensor& evaluated(const Tensor& losses);

 private:
  void sum_shards(const Tensor& losses, const Tensor& of_data_shards);

  Backend& backend_;
  Communicator& data_;
  Arena arena_;
  Tensor of_micro_batches_, of_data_shards_;
  Tensor evaluation_;  ///< losses of data shards, and the hits
  Tensor loss_spans_, shard_spans_;
};

}  // namespace mindpipe
