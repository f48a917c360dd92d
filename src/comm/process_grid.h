#pragma once
#include <array>

#include "comm/grid.h"
#include "comm/mpi.h"

namespace mindpipe {

/// This process's place in the grid and its four groups.
class ProcessGrid {
 public:
  /// Collective over `world`, whose ranks the degrees of `shape` must multiply to.
  ProcessGrid(MPI_Comm world, const Coord& shape);

  const Coord& shape() const { return shape_; }
  const Coord& coord() const { return coord_; }
  int rank() const { return rank_at(shape_, coord_); }
  MPI_Comm along(Axis axis) const {
    return along_[static_cast<int>(axis)].get();
  }  ///< ranks that differ from this one in `axis` only

 private:
  Coord shape_, coord_;
  std::array<MpiComm, axes.size()> along_;
};

}  // namespace mindpipe
