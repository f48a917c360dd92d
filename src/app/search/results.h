#pragma once
#include <string>
#include <vector>

#include "app/search/score.h"

namespace mindpipe {

struct Config;

/// The networks that come out of a search, the best first: of the lowest losses; of a search for a front,
/// spread over it from the lowest loss on. Places among the scores.
std::vector<std::size_t> best_of(const Config& config, const std::vector<Score>& scores);

/// A table of them, and how all scores lie.
std::string table_of(const Config& config, const std::vector<Score>& scores,
                     const std::vector<std::size_t>& best);
/// Writes best-1.yaml and so on, and of a search for a front front.csv and front.svg. Says what was written.
void write_results(const Config& config, const std::vector<Score>& scores,
                   const std::vector<std::size_t>& best, const std::string& directory);

}  // namespace mindpipe
