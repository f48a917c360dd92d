#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace mindpipe {

/// Cuts a list of blocks into `chunks` runs so that the costliest is as cheap as possible, as early as
/// possible. Gives the first block of every chunk, then the number of blocks. Refuses more chunks than
/// blocks.
std::vector<int> balanced_cuts(const std::vector<std::int64_t>& cost, int chunks);

/// Cuts like balanced_cuts, but of the cuts whose costliest chunk is as cheap as possible it takes the one
/// with the least sum of squares: where one block is dear, the other chunks are about equal. `slower`: how
/// many times a chunk's blocks cost there; empty: once.
std::vector<int> even_cuts(const std::vector<std::int64_t>& cost, int chunks,
                           const std::vector<double>& slower = {});

/// Cuts like even_cuts, but of the cuts whose costliest chunk is as cheap as possible it takes one that is
/// near to the cut `from`: no boundary lies more blocks from where it is there than it has to, and each as
/// near as those before it allow.
std::vector<int> near_cuts(const std::vector<std::int64_t>& cost, const std::vector<int>& from,
                           const std::vector<double>& slower);

/// Cuts for a V, of two chunks a stage that are cheap together: the costliest stage, which has a run of
/// blocks from the front and one from the back, is about as cheap as possible, exactly so where blocks are
/// alike but for the first and the last; then no boundary, moved by a block, makes stages, and then chunks,
/// more even. Refuses more chunks than blocks.
std::vector<int> cuts_in_v(const std::vector<std::int64_t>& cost, int stages);

/// The cuts with the boundary before one chunk `by` blocks further on; none: a chunk would be empty.
std::optional<std::vector<int>> with_boundary_moved(std::vector<int> first, std::size_t chunk, int by);

/// Every cut of so many blocks into chunks, in the form of balanced_cuts, if there are at most `most` of
/// them; else none.
std::vector<std::vector<int>> every_cut(int blocks, int chunks, std::size_t most);

/// The cuts of a configuration, the first block of every chunk but the first, in the form of balanced_cuts.
/// `key`: of the setting that names them.
std::vector<int> manual_cuts(const std::vector<int>& cuts, int blocks, int chunks,
                             std::string_view key = "schedule.cuts");

}  // namespace mindpipe
