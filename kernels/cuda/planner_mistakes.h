#pragma once
#include <cstdint>
#include <map>

namespace mindpipe::cuda {

/// What a test may have the planner tell cuDNN wrongly, in either direction.
enum class Mistake : unsigned char {
  none,
  no_scale,
  other_scale,
  no_mask,
  other_corner,  ///< another corner of the scores, in which the mask's diagonal begins or ends
  wide_band,     ///< the mask lets one key behind the diagonal through
  no_lengths,
  any_order,  ///< a backward that need not be deterministic
  bf16_between,
  bf16_sums
};

// The functions below stand in a file of their own, so that a test can link others before the library's: the
// planner is large, and is compiled once for the program and for that test.
/// Whether a mistake is made in graphs of one direction: never, in the program.
bool is_mistaken(Mistake mistake, bool backward);
/// The numbers that travel beside a graph's tensors, by their tensors' numbers.
using Scalars = std::map<std::int64_t, double>;
/// Hands over the numbers of a finished graph. Whether somebody wanted them: no plan is made then. Nobody
/// does, in the program.
bool hear_scalars(const Scalars& scalars);

}  // namespace mindpipe::cuda
