#pragma once
#ifdef MINDPIPE_MUTATIONS
#include <cstdint>
#include <functional>
#include <map>
#endif

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

// Product code asks is_mistaken(...), which is constantly false outside the build of a test.
#ifdef MINDPIPE_MUTATIONS
/// Chooses the mistake that is made from now on, in graphs of one direction.
void set_mistake(Mistake mistake, bool backward);
bool is_mistaken(Mistake mistake, bool backward);
/// Gets the numbers that travel beside a graph's tensors, by their tensors' numbers, when the graph is
/// finished; no plan is made while there is a listener.
using Scalars = std::map<std::int64_t, double>;
std::function<void(const Scalars&)>& scalar_listener();
#else
constexpr bool is_mistaken(Mistake, bool) { return false; }
#endif

}  // namespace mindpipe::cuda
