#pragma once
#include <map>
#include <memory>
#include <vector>

#include "optim/unit_optimizer.h"
#include "state/stage.h"

namespace mindpipe {

/// The groups of this rank's process, one for each axis of the grid. Over data they sum scalars only:
/// gradients go by Reductions, beside the computation.
struct Groups {
  Communicator& tensor;
  Communicator& data;
  Communicator& pipeline;
};

/// How many numbers a step's scalars are made of on one rank.
struct ScalarCounts {
  std::int64_t chunks = 0;   ///< of this rank's gradients, or what its replicas hold of them
  std::int64_t tensors = 0;  ///< of the whole model, where they are trained
  int micro_batches = 1, data_shards = 1, tensor_shards = 1;  ///< of this rank
  int data_ranks = 1, tensor_ranks = 1, pipeline_ranks = 1;
  bool sharded = false;  ///< whether replicas hold parts of the gradients

  std::size_t bytes() const;  ///< of what they are added up in
  /// Bytes of what arrives in the exchanges of each group.
  std::size_t tensor_exchange() const;
  std::size_t data_exchange() const;
  std::size_t pipeline_exchange() const;
};
ScalarCounts scalar_counts(const Layout& layout, const Model& model, std::int64_t chunks, bool sharded,
                           bool trains);

/// The loss of a step and the square of its gradient, added up on the device in one fixed order,
/// and what is decided from them; of an evaluation, losses and hits. Nothing here waits for the device,
/// or brings a number to the host.
class ScalarSums {
 public:
  using Optimizers = std::map<int, std::unique_ptr<UnitOptimizer>>;
  /// Takes its memory; what says which number goes into which sum is known once and for all.
  ScalarSums(Stage& stage, Groups groups, const Optimizers& optimizers, bool sharded, bool trains);

  /// `losses`: of the step [micro_batches, samples, targets] on the rank that has the head, else none.
  /// Collective over the groups.
  void run(const Optimizers& optimizers, const Tensor& losses, const StepRule& rule);
  /// The sum over the whole batch of losses [micro_batches, samples, targets], f64 [1], on the rank that has
  /// the head. Collective over data.
  Tensor sum_of_losses(const Tensor& losses) {
    const Tensor sum = totals_.range(0, 1);
    sum_losses_over_data(losses, sum);
    return sum;
  }
  /// Where the head of an evaluation counts: f64 [Hits::places].
  Tensor hits() const { return evaluation_.range(counts_.data_shards, Hits::places); }
  /// Forgets all hits.
  void begin_evaluation();
  /// On a rank that has the head: the sum of the losses of each of its data shards, and behind them its hits
  /// since the evaluation began.
  const Tensor& evaluated(const Tensor& losses);
  const Tensor& decision() const { return decision_; }

 private:
  void sum_losses(const Tensor& losses, const Tensor& of_data_shards);
  void sum_losses_over_data(const Tensor& losses, const Tensor& sum);
  void sum_squares(const Optimizers& optimizers);
  Tensor take_spans(const std::vector<std::pair<std::int64_t, std::int64_t>>& spans);

  Stage& stage_;
  Groups groups_;
  ScalarCounts counts_;
  Arena arena_;
  Tensor chunks_;  ///< squares of each chunk of each local unit; zeros for the parts of other ranks
  Tensor of_micro_batches_, of_data_shards_;  ///< losses
  Tensor of_tensor_shards_;  ///< squares [local shards][tensors of the whole model]; exact zeros stand for
                             ///< what other ranks hold
  Tensor sums_;              ///< the loss, then the square of each tensor
  Tensor totals_;            ///< the loss and the square
  Tensor evaluation_;        ///< losses of data shards, and the hits
  Tensor decision_;
  Tensor loss_spans_, shard_spans_, tensor_spans_, total_spans_;
};

}  // namespace mindpipe
