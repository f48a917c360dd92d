#pragma once
#include <cstdlib>
#include <string_view>
#include <vector>

namespace mindpipe {

/// A run's part of the cases: every third where MINDPIPE_CASES is quick, the others where it is thorough, and
/// else all. tests/CMakeLists.txt says it to tests that have a number of ranks in both tiers.
template <class Case>
std::vector<Case> part_of_cases(const std::vector<Case>& all) {
  const char* tier = std::getenv("MINDPIPE_CASES");
  if (tier == nullptr) return all;
  const bool is_quick = std::string_view(tier) == "quick";
  std::vector<Case> part;
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((i % 3 == 0) == is_quick) part.push_back(all[i]);
  return part;
}

}  // namespace mindpipe
