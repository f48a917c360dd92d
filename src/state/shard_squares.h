#pragma once
#include <optional>

#include "config/kinds.h"
#include "state/decisions.h"

namespace mindpipe {

/// How much a step's `ShardSquares` add up on a rank.
struct SquaresSize {
  std::int64_t chunks = 0;   ///< chunks of the gradients of all uses of units here
  std::int64_t tensors = 0;  ///< tensors of the whole model; a tied table is one for each use
  std::int64_t shards = 0;   ///< data shards of this rank
};
/// None where no step is measured: train.noise_every is 0, there is one data shard, or nothing is computed.
std::optional<SquaresSize> squares_size(const TrainConfig& train, DeviceKind device, const Layout& layout,
                                        const Model& model, const Optimizers& here);

/// Squares of the gradients that the data shards of a step make, and of their sum: the noise of a gradient
/// follows from them. They are added up in one fixed order: chunks of a tensor's shard, the tree over tensor
/// shards, tensors. The uses of a tied table count apart. Everything stays on the device.
class ShardSquares {
 public:
  static std::size_t bytes(const SquaresSize& size, const Layout& layout);
  ShardSquares(Stage& stage, const Optimizers& optimizers, Groups groups, const SquaresSize& size,
               bool sharded);

  /// Forgets the step before.
  void begin();
  /// Takes one parameter's gradient by a data shard of this rank, before it is added to those of others.
  void add(const UnitUse& use, int param, int shard);
  /// Takes the sum over data of all gradients, before uses are added up. Gives back f64 [data shards + 1],
  /// the sum's square last. Collective over all groups.
  const Tensor& finish();

 private:
  std::int64_t tensor_of(const UnitUse& use, int param) const;
  Tensor chunks_of(const UnitUse& use) const;
  std::int64_t first_chunk_of(const UnitUse& use) const;
  Tensor row(int tensor_shard, std::int64_t row) const;
  Tensor span(int tensor_shard, std::int64_t tensor) const;
  void take_spans_of_chunks();

  Stage& stage_;
  const Optimizers& optimizers_;
  Groups groups_;
  SquaresSize size_;
  bool sharded_;
  Arena arena_;
  std::vector<UnitUse> uses_;                ///< made by blocks of this stage
  std::map<int, std::int64_t> first_chunk_;  ///< by unit here
  std::vector<std::int64_t> first_tensor_;   ///< by unit of the model
  Tensor chunks_, spans_;
  Tensor squares_;  ///< [local tensor shards][local data shards, and the sum][tensors]
  Tensor sums_;     ///< over tensor shards
  Tensor row_spans_, of_rows_, of_shards_;
};

}  // namespace mindpipe
