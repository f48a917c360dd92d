#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/check.h"

namespace mindpipe {

/// The four ways the work is divided. Tensor is innermost, so its ranks share a node.
enum class Axis { tensor, data, pipeline, supernet };
inline constexpr std::array axes{Axis::tensor, Axis::data, Axis::pipeline, Axis::supernet};
const char* name_of(Axis axis);

/// Degrees of parallelism, or a position in them: one integer for each axis.
struct Coord {
  int tensor = 0, data = 0, pipeline = 0, supernet = 0;
  int operator[](Axis axis) const {
    return std::array{tensor, data, pipeline, supernet}[static_cast<int>(axis)];
  }
  int& operator[](Axis axis) {
    return axis == Axis::tensor     ? tensor
           : axis == Axis::data     ? data
           : axis == Axis::pipeline ? pipeline
                                    : supernet;
  }
  bool operator==(const Coord&) const = default;
};
/// Text of degrees: "supernet 1 x pipeline 2 x data 2 x tensor 1"
std::string to_string(const Coord& shape);

int num_ranks(const Coord& shape);
int rank_at(const Coord& shape, const Coord& coord);
Coord coord_at(const Coord& shape, int rank);

/// A program has a list for each stage of each lane, lane after lane: how many, which one a place in the grid
/// runs, and a rank that runs it.
int program_ranks(const Coord& shape);
int program_rank_at(const Coord& shape, const Coord& coord);
int rank_that_runs(const Coord& shape, int program_rank, int data = 0, int tensor = 0);
/// "2", or with lanes "1.2": stage, or lane and stage.
std::string name_of_program_rank(const Coord& shape, int program_rank);

/// Says whether a run could use these degrees; an empty function: any.
using GridFits = std::function<bool(const Coord& shape)>;

/// The grids of `ranks` ranks that fit, at most `most` of them, those first that change the wanted degrees
/// least.
std::vector<Coord> nearest_grids(const Coord& wanted, int ranks, const GridFits& fits, std::size_t most = 3);
/// Text of several grids, "a; b; c", or that there is none.
std::string to_string(const std::vector<Coord>& shapes);

/// The degrees of a job of `ranks` ranks: one that is 0 (auto) becomes the rest of the ranks. Fails with exit
/// code 78 and the nearest grids that fit when the degrees do not multiply to the ranks.
Coord resolve_grid(const Coord& degrees, int ranks, const GridFits& fits = {});

/// Whether `degree` ranks can have equally many of `logical` shards.
bool can_share(int logical, int degree);
/// Fails with exit code 78 and the degrees that would do unless `degree` ranks can share `logical` shards of
/// this axis.
void check_degree(Axis axis, int logical, int degree);

}  // namespace mindpipe
