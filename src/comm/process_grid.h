#pragma once
#include <array>

#include "comm/grid.h"
#include "comm/mpi.h"

namespace mindpipe {

/// Place of this process in the grid, and the groups that it is in.
class ProcessGrid {
 public:
  /// Makes the grid of `world`, whose ranks the degrees of `shape` must multiply to. Collective.
  ProcessGrid(MPI_Comm world, const Coord& shape);

  const Coord& shape() const { return shape_; }
  const Coord& coord() const { return coord_; }
  int rank() const { return rank_at(shape_, coord_); }
  /// The ranks that differ from this one in `axis` only.
  MPI_Comm along(Axis axis) const { return along_[static_cast<int>(axis)].get(); }
  /// The ranks of a program: those of this one's place in data and tensor, lane after lane, stage after
  /// stage.
  MPI_Comm program() const { return program_.get(); }

 private:
  Coord shape_, coord_;
  std::array<MpiComm, axes.size()> along_;
  MpiComm program_;
};

}  // namespace mindpipe
