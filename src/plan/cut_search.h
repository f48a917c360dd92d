#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace mindpipe {

/// Where a model that can be cut in no more ways than this is searched closely, each of them is looked at.
inline constexpr std::size_t few_cuts = 256;

/// What a search may ask of cuts, in the form of balanced_cuts.
struct CutCosts {
  std::function<double(const std::vector<int>&)> bound;  ///< which no simulated cost is below
  /// What a step costs as simulated; much where it does not fit.
  std::function<double(const std::vector<int>&)> simulated;
};

/// Cuts that cost little: every cut is looked at where there are at most `few`, else cuts of which one
/// boundary, or neighbours together, lie a block further up or down, from `first_block` on while that is
/// better. Those whose bounds say enough are not simulated, of the others `most` at most. `cost`: of
/// `first_block`.
std::vector<int> cheap_cuts(std::vector<int> first_block, double cost, const CutCosts& costs, int most,
                            std::size_t few = few_cuts);

}  // namespace mindpipe
