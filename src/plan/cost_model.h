#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/profile.h"
#include "config/sections/optimizer.h"
#include "config/sections/train.h"
#include "make_backend.h"
#include "plan/block_passes.h"
#include "plan/device_on_paper.h"
#include "program/outline.h"
#include "state/gradient_folds.h"

namespace mindpipe {

/// Bytes that an update of one parameter moves: its gradient, and master and moments there and back.
inline constexpr double bytes_of_update = 28;

/// What the configuration allows a library's plans of attention.
AttentionLimit attention_limit(const Config& config);

/// A model on paper: its blocks priced and its memory counted, without allocating, for any rank of any grid.
class CostModel {
 public:
  CostModel(const Config& config, const Layout& layout);

  /// What passes over a range of blocks work in, one micro-batch at a time.
  struct Footprint {
    std::size_t kept = 0;                      ///< on a tape
    std::size_t waiting = 0;                   ///< beside it, in the first half of a backward and behind it
    std::size_t scratch = 0;                   ///< scratch of the compute queue
    std::size_t exchange = 0;                  ///< arrivals of the tensor group, before they are added
    std::size_t zeros = 0;                     ///< zeros of GradientFolds
    Workspace backend;                         ///< working memory of kernels and libraries
    std::map<int, std::size_t> segments = {};  ///< segments of a chunk's swapped blocks, not on its tape
    void include(const Footprint& other);      ///< the larger of each
  };
  /// Forward and backward of a chunk, and the sums over T-ths of the sequence that follow a data shard's last
  /// backward.
  Footprint training_footprint(int first, int last);
  Footprint training_footprint(int first, int last, Tape::WeightGradients made);
  /// Evaluation: outputs of all blocks in `kept`; what enters the first lies elsewhere.
  Footprint evaluation_footprint(int first, int last);
  /// Passes of a sample's rows at once through a model that continues texts, beside its caches.
  Footprint generation_footprint();

  /// Lets a block of a supernet be candidate `candidate`, or its last, in what is asked from now on: of one
  /// of its parts (Model::Block::choices), or of each of them.
  void choose(int block, int candidate);
  /// Lets one part of a block be a candidate.
  void choose_part(int block, int part, int candidate);
  /// Costs of every block and unit, and what crosses every cut, for schedules and the simulator.
  Outline outline();
  /// Every product of a micro-batch's forward and backward, each once: what `doctor --tune` tunes.
  std::vector<ProductCall> products();
  /// Tells of every operation of a micro-batch's forward and backward, as a GPU does it that has all blocks:
  /// what ends one and begins the next is joined.
  void each_operation(const std::function<void(const PricingBackend::Asked&)>& see);
  /// What each block's products, attention and convolutions take this rank, forward and backward of one
  /// micro-batch.
  /// A digest of what a pass over the block asks of its device: equal work has equal digests.
  std::uint64_t work_of(int block);
  /// Forward and backward of a block by the description of a device, seconds.
  double described_seconds(int block);
  /// What device.profile is worth to a plan.
  struct Known {
    double estimated = 0;  ///< share of the time of all blocks whose price it does not have
    double scatter = 0;    ///< how far its prices scatter (MeasuredPass::spread), in the mean of their time
  };
  Known known() const {
    if (all_ == 0) return {};
    return {estimated_ / all_, all_ > estimated_ ? scattered_ / (all_ - estimated_) : 0};
  }
  std::vector<double> operations_of_blocks();
  double operations_of_block(int block);

  Model& model() { return passes_.model(); }
  Stage& stage() { return passes_.stage(); }

 private:
  struct Pass {
    double forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
    TensorSums forward_sums, backward_sums;
    Footprint footprint;
    std::size_t put_off = 0;  ///< what a backward in halves leaves beside the tape
    std::uint64_t work = 0;
  };
  /// Puts measured times in place of described ones.
  void take_measured(Pass& pass);
  Pass pass(int first, int last, Tape::WeightGradients weight_gradients, bool of_chunk);
  BlockCost cost_of_block(int block);
  std::vector<BlockCost> costs_of_choice(int block);
  void forget_footprint();
  Footprint footprint_used();
  void require_countable() const;
  BoundaryBytes crossing(int block);
  std::int64_t nanoseconds(double seconds) const;
  UnitCost cost_of(const Unit& unit) const;
  Tape::WeightGradients weight_gradients() const {
    return row_of(schedule_).splits_backward ? Tape::WeightGradients::later : Tape::WeightGradients::now;
  }

  TrainConfig train_;
  OptimizerConfig optimizer_;
  ScheduleKind schedule_;
  Layout layout_;
  Memory memory_;
  std::unique_ptr<PricingBackend> backend_;
  std::unique_ptr<WorkspaceOnPaper> workspace_;
  Communicator tensor_;
  std::vector<std::uint8_t> choice_;  ///< supernet: the candidates that are priced
  TensorSums sums_;                   ///< since they were last taken
  BlockPasses passes_;
  std::optional<Profile> profile_;
  double estimated_ = 0, all_ = 0;  ///< seconds
  double scattered_ = 0;            ///< measured seconds, each times its spread
};

}  // namespace mindpipe
