#pragma once
#include <memory>

#include "supernet/front.h"
#include "supernet/searcher.h"

namespace mindpipe {

/// Which of the networks that a search knows may be parents.
class ParentPool {
 public:
  virtual ~ParentPool() = default;
  /// What a network has been found to be; in the order of ids.
  virtual void add(std::int64_t id, const Objectives& objectives) = 0;
  virtual std::int64_t size() const = 0;
  /// The id of a parent, picked by two random words.
  virtual std::int64_t pick(std::uint32_t word, std::uint32_t other) const = 0;
};

/// The best of all by the first objective, ties by id.
std::unique_ptr<ParentPool> pool_of_the_best(int parents);

/// A population that each new network enters and of which the worst one leaves: of the last rank of
/// non-domination, and there where it is most crowded. A parent wins against another: by rank, by crowding
/// distance, by id (NSGA-II: Deb et al., 2002).
std::unique_ptr<ParentPool> pool_of_ranks(int population);

}  // namespace mindpipe
