#include "comm/process_grid.h"

namespace mindpipe {

ProcessGrid::ProcessGrid(MPI_Comm world, const Coord& shape) {
  int rank = 0, size = 0;
  MPI_CHECK(MPI_Comm_rank(world, &rank));
  MPI_CHECK(MPI_Comm_size(world, &size));
  shape_ = resolve_grid(shape, size);
  coord_ = coord_at(shape_, rank);

  // Ranks with the same colour form a group. Zeroing the axis that varies gives
  // every member of a group the same colour, and other groups another.
  for (Axis axis : axes) {
    Coord fixed = coord_;
    fixed[axis] = 0;
    MPI_CHECK(MPI_Comm_split(world, rank_at(shape_, fixed), rank, along_[static_cast<int>(axis)].receive()));
  }
  const Coord place{coord_.tensor, coord_.data, 0, 0};
  MPI_CHECK(MPI_Comm_split(world, rank_at(shape_, place), rank, program_.receive()));
}

}  // namespace mindpipe
