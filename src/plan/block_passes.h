#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "state/stage.h"

namespace mindpipe {

/// Passes over ranges of a model's blocks, one micro-batch at a time and each with a tape of its own: on
/// paper to count and price them, on a device to time them. Values and gradients are the caller's.
class BlockPasses {
 public:
  /// Bytes of the arenas.
  struct Sizes {
    std::size_t kept, scratch, outside;
  };
  BlockPasses(const Config& config, const Layout& layout, Backend& backend, Memory& memory,
              Communicator& tensor);

  /// Takes memory for a micro-batch and its passes.
  void allocate(const Sizes& sizes);

  /// Forward and backward of the blocks [first, last). `told` is called between the parts: after the forward,
  /// after the backward, and after the gradients of weights that were put off.
  enum class Part : std::uint8_t { entry, forward, backward, weights };
  /// What a micro-batch's tape took.
  struct Taken {
    std::size_t entered = 0;                   ///< a copy of what entered
    std::size_t kept = 0;                      ///< behind the forward, in its own room
    std::size_t room = 0;                      ///< in its own room, at most
    std::size_t beside = 0;                    ///< products that were put off hold so much, at most
    std::size_t put_off = 0;                   ///< products hold so much behind the backward
    std::map<int, std::size_t> segments = {};  ///< segments of swapped blocks
  };
  /// `swapped`: blocks whose segments lie by themselves; on paper alone.
  Taken train(int first, int last, Tape::WeightGradients weight_gradients,
              const std::function<void(Part)>& told, const std::vector<int>& swapped = {});
  /// Forward of the blocks in this mode; nothing is kept.
  void look(int first, int last, Tape::Mode mode);

  Stage& stage() { return *stage_; }
  Model& model() { return stage_->model(); }
  const Model& model() const { return stage_->model(); }
  Arena& kept() { return kept_; }
  Arena& scratch() { return scratch_; }
  Arena& outside() { return outside_; }
  MicroBatch& batch() { return batch_; }
  Tape make_tape(Arena* caches = nullptr);
  void forget();

 private:
  Boundary boundary_before(int block, Tape& tape);
  void fill_inputs();

  Layout layout_;
  Backend& backend_;
  Memory& memory_;
  std::unique_ptr<Stage> stage_;
  Arena inputs_, kept_, scratch_, outside_;
  MicroBatch batch_;
  Tensor losses_, hits_;
};

}  // namespace mindpipe
