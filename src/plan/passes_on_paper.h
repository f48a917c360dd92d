#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "make_backend.h"
#include "plan/block_passes.h"
#include "plan/device_on_paper.h"
#include "program/outline.h"
#include "state/gradient_folds.h"

namespace mindpipe {

/// What the configuration allows a library's plans of attention.
AttentionLimit attention_limit(const Config& config);

/// What passes over a range of blocks work in, one micro-batch at a time.
struct PassFootprint {
  std::size_t kept = 0;                      ///< on a tape
  std::size_t waiting = 0;                   ///< beside it, in the first half of a backward and behind it
  std::size_t scratch = 0;                   ///< scratch of the compute queue
  std::size_t exchange = 0;                  ///< arrivals of the tensor group, before they are added
  std::size_t zeros = 0;                     ///< zeros of GradientFolds
  Workspace backend;                         ///< working memory of kernels and libraries
  std::map<int, std::size_t> segments = {};  ///< segments of a chunk's swapped blocks, not on its tape
  void include(const PassFootprint& other);  ///< the larger of each
};

/// What the passes over a range of blocks take, by the description of a device; seconds.
struct PassOnPaper {
  double forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
  TensorSums forward_sums, backward_sums;
  PassFootprint footprint;
  std::size_t put_off = 0;  ///< what a backward in halves leaves beside the tape
  std::uint64_t work = 0;   ///< a digest of what is asked of the device
};

/// Passes over ranges of a model's blocks on paper: their time by the description of a device, and their
/// memory counted, without allocating, for any rank of any grid.
class PassesOnPaper {
 public:
  PassesOnPaper(const Config& config, const Layout& layout);
  /// Takes memory on paper; refuses what no machine has. Before anything is asked.
  void allocate();

  /// Lets a block of a supernet be candidate `candidate`, or its last, in what is asked from now on: of one
  /// of its parts (Model::Block::choices), or of each of them.
  void choose(int block, int candidate);
  /// Lets one part of a block be a candidate.
  void choose_part(int block, int part, int candidate);

  /// Passes of a chunk, with the copy of what enters it, its swapped blocks in segments of their own; or of
  /// blocks as what each of them costs adds up.
  PassOnPaper pass(int first, int last, Tape::WeightGradients weight_gradients, bool of_chunk);
  /// Forward and backward of a chunk, and the sums over T-ths of the sequence that follow a data shard's last
  /// backward.
  PassFootprint training_footprint(int first, int last);
  PassFootprint training_footprint(int first, int last, Tape::WeightGradients made);
  /// Evaluation: outputs of all blocks in `kept`; what enters the first lies elsewhere.
  PassFootprint evaluation_footprint(int first, int last);
  /// Passes of a sample's rows at once through a model that continues texts, beside its caches.
  PassFootprint generation_footprint();

  /// Every product of a micro-batch's forward and backward, each once: what `doctor --tune` tunes.
  std::vector<ProductCall> products();
  /// Tells of every operation of a micro-batch's forward and backward, as a GPU does it that has all blocks:
  /// what ends one and begins the next is joined.
  void each_operation(const std::function<void(const PricingBackend::Asked&)>& see);

  /// When the schedule makes gradients of weights.
  Tape::WeightGradients weight_gradients() const {
    return row_of(schedule_).splits_backward ? Tape::WeightGradients::later : Tape::WeightGradients::now;
  }
  PricingBackend& backend() const { return *backend_; }
  Model& model() { return passes_.model(); }
  const Model& model() const { return passes_.model(); }
  Stage& stage() { return passes_.stage(); }

 private:
  void require_countable() const;
  void forget_footprint();
  PassFootprint footprint_used();

  ScheduleKind schedule_;
  Layout layout_;
  Memory memory_;
  std::unique_ptr<PricingBackend> backend_;
  std::unique_ptr<WorkspaceOnPaper> workspace_;
  Communicator tensor_;
  std::vector<std::uint8_t> choice_;  ///< supernet: the candidates that are priced
  TensorSums sums_;                   ///< since they were last taken
  BlockPasses passes_;
};

}  // namespace mindpipe
