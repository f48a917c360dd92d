#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "app/search/score.h"
#include "config/sections/search.h"
#include "plan/network_measures.h"
#include "supernet/searcher.h"

namespace mindpipe {

/// Which networks a search scores, and what is known of them: a function of the configuration and of the
/// losses, alike on every rank.
class NetworkSearch {
 public:
  /// Refuses limits that hardly any network meets. The settings and the measures outlive the search.
  NetworkSearch(const SearchConfig& search, const Space& space, std::uint64_t seed,
                const NetworkMeasures& measures);

  /// Takes what an earlier start has scored, the first ids. Fails where these are not the networks that this
  /// search scores. `file`: where they stand.
  void take_up(const std::vector<Score>& known, const std::string& file);
  /// The network to score next; none: there are as many as were asked for.
  std::optional<Subnet> next();
  /// Hears of the loss of the oldest network under way, and of its two halves.
  const Score& hear(double loss, const std::array<double, 2>& halves);

  const std::vector<Score>& scores() const { return scores_; }
  bool is_over() const { return static_cast<int>(scores_.size()) == search_.scores; }

 private:
  Score proposed();
  void tell(const Score& score);

  const SearchConfig& search_;
  const NetworkMeasures& measures_;
  std::unique_ptr<Searcher> searcher_;
  std::vector<Objective> told_;  ///< to the searcher, in its order
  std::deque<Score> under_way_;
  std::vector<Score> scores_;
};

/// By how much a network misses the limits of a search: the sum of the shares above each; 0: it meets them.
double excess_of(const SearchConfig& search, const NetworkMeasures& measures,
                 const std::vector<std::uint8_t>& choice);

/// Objectives that are compared in a search: those of its searcher.
std::vector<Objective> objectives_of(const SearchConfig& search);

}  // namespace mindpipe
