#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/model.h"
#include "program/outline.h"
#include "state/layout.h"

namespace mindpipe {

/// This rank's part of a model: the whole list of blocks, memory for the units of its own, and the passes
/// over ranges of blocks.
class Stage {
 public:
  /// `ranges`: the blocks [first, last) of each chunk that lives here. `reach`: those that may run here,
  /// which are more where subnets have cuts of their own; empty: the same.
  Stage(const Config& config, const Layout& layout, const LayerContext& context,
        std::vector<std::pair<int, int>> ranges, std::vector<std::pair<int, int>> reach = {});

  /// Goes on with other blocks, between two steps.
  void take(std::vector<std::pair<int, int>> ranges);

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const LayerContext& context() const { return context_; }
  const Layout& layout() const { return layout_; }
  const std::vector<std::pair<int, int>>& ranges() const { return ranges_; }
  /// Whether a block lives here.
  bool has_block(int block) const;
  bool has_head() const { return has_block(static_cast<int>(model_->blocks().size()) - 1); }
  /// Indices of the units of all blocks that may run here, in model order.
  const std::vector<int>& local_units() const { return local_units_; }
  Unit& unit(int index) { return *model_->units()[index]; }
  /// Whether this stage speaks for the unit: one with homes on several stages counts where its first use
  /// is.
  bool counts_here(int unit) const;
  /// Which of its unit's uses, in model order, a use is: the number of its accumulators.
  int use_of(const UnitUse& use) const {
    return model_->units()[use.unit]->uses() > 1 ? model_->blocks()[use.block].use : 0;
  }

  /// Room for what batch norms of blocks [first, last) of some ranges collect of a network of a supernet.
  void allocate_statistics(const std::vector<std::pair<int, int>>& ranges);
  /// What batch norms collect here.
  std::size_t statistics_bytes() const;

  /// Shapes [samples, rows of this rank, width] of what enters a block: an activation, and an encoder's
  /// output; none where none enters.
  struct Entering {
    Shape activation, memory;
  };
  Entering before(int block) const;
  /// The fields of a sample that blocks here read.
  std::vector<Field> fields() const { return model_->fields_of(reach_); }

  /// Blocks [first, last). A first block takes an empty boundary; an encoder's output that no later block
  /// reads is dropped.
  Boundary forward(int first, int last, Boundary in, Tape& tape);
  Boundary backward(int first, int last, Boundary dout, Tape& tape);
  /// What is called with each block's output: how a loss that is not finite is traced to its block.
  std::function<void(int block, const Boundary& out)> after_block;

 private:
  void find_units();

  LayerContext context_;
  Layout layout_;
  std::unique_ptr<Model> model_;
  std::vector<std::pair<int, int>> ranges_, reach_;
  std::vector<int> local_units_;
  std::optional<NetworkStatistics> statistics_;
};

}  // namespace mindpipe
