#pragma once
#include <string>
#include <vector>

#include "config/models/space.h"

namespace mindpipe {

class Section;

/// Whether a side of a space consists of cells.
bool has_cells(const Node& side);
/// The keys of such a side.
std::vector<std::string> keys_of_cells();
/// Reads a side that consists of cells: the candidates of left, right and combine of each block, cell by
/// cell. `no_cross`: why no branch may attend to an encoder; empty: it may.
std::vector<std::vector<Candidate>> read_cells(const Section& side, const std::string& no_cross,
                                               CellSide& cell);

/// The two states that enter a block of a cell, its branches, and what leaves it.
struct CellShape {
  std::int64_t newest = 0, older = 0;           ///< widths of what enters; no older one: 0
  std::int64_t left = 0, right = 0, width = 0;  ///< widths of branches and output; no right one: 0
  int residual = 0;                             ///< which state is added, as CellBranch::input; 0: none
  bool keeps = false;                           ///< what was the newest state goes on beside what comes out
  /// Numbers a row that enter, and that leave.
  std::int64_t entering() const { return newest + older; }
  std::int64_t leaving() const { return width + (keeps ? newest : 0); }
};

/// The shapes of all blocks of a network of cells, or of all networks: there each is of the model's width.
std::vector<CellShape> shapes_of_cells(const Space& space, const std::vector<int>* choice, int width);
/// Why a network of cells, or without a choice one of all, does not fit a width or a number of logical
/// tensor shards; empty where it fits.
std::string misfit_of_cells(const Space& space, const std::vector<int>* choice, int width, int shards);

}  // namespace mindpipe
