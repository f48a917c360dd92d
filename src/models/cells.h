#pragma once
#include "config/models/cells.h"
#include "layers/cell_block.h"
#include "models/candidates.h"

namespace mindpipe {

struct DataConfig;

/// Makes the blocks of cells (CellBlock) of a space, of one network or of all. The units of a block are those
/// of its left and of its right branch, named by the first candidate that has them: "blocks.7.3".
class Cells {
 public:
  /// `choice`: of one network; without one blocks may be all their candidates.
  Cells(Model& model, const DataConfig& data, const SpaceSettings& settings, const LayerContext& context,
        const std::vector<int>* choice);

  /// Appends a block of the space's list of layers.
  void append(int layer);
  /// One block alone, its parameters in units that `unit` finds or makes by their names.
  using FindUnit = std::function<Unit&(const std::string& name)>;
  CellBlockSpec make(int layer, const FindUnit& unit) const;
  /// A block's name: "encoder.1.2" is block 2 of cell 1.
  std::string name_of(int layer) const;

 private:
  std::vector<int> numbers(int block) const;
  CellBranchSpec branch(int block, int number, const CellShape& shape, const FindUnit& unit) const;
  Norm norm(Unit& unit, std::int64_t width) const;

  Model& model_;
  const DataConfig& data_;
  const SpaceSettings& settings_;
  LayerContext context_, whole_;  ///< the latter of what every tensor rank computes all rows of
  const std::vector<int>* choice_;
  std::vector<CellShape> shapes_;
};

}  // namespace mindpipe
