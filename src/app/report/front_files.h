#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "supernet/front.h"

namespace mindpipe {

/// What a search weighs: its name and what it is counted in, like "latency" in "s"; nothing where it has no
/// unit.
struct ObjectiveName {
  std::string name, unit;
};

/// A network that a search has scored.
struct ScoredNetwork {
  std::int64_t id = 0;
  std::vector<std::uint8_t> choice;
  Objectives objectives;  ///< in the order of their names
};

/// All that a search has found, as its files show it.
struct SearchFound {
  std::vector<ObjectiveName> names;  ///< the loss first, and at least one more
  std::vector<ScoredNetwork> scores;
  std::vector<std::size_t> front, best;  ///< which of the scores; the best in their order
};

/// The front in the order of the first objective, ties by id: number among the best, id, objectives, choice.
std::string front_as_csv(const SearchFound& found);

/// Each other objective against the loss, a panel each, one below the other and as wide as a page's column:
/// all scores in light grey, the front dark, the best as diamonds; a line where nobody is better in the
/// panel's two. Networks whose objectives are not finite are left out.
std::string front_as_svg(const SearchFound& found, const std::string& title);

}  // namespace mindpipe
