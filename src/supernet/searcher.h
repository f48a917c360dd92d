#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "config/kinds.h"
#include "core/check.h"
#include "supernet/subnet.h"

namespace mindpipe {

// clang-format off
#define MINDPIPE_DESCENTS(kind) /* enumerated: found by counting, where draws find nothing new any more */ \
  kind(drawn, "drawn") \
  kind(crossover, "crossover") \
  kind(mutation, "mutation") \
  kind(enumerated, "enumerated")
// clang-format on

MINDPIPE_KINDS(Descent, NamedRow, MINDPIPE_DESCENTS)

/// A network that a search is to score, and how it came about. Ids count from 0.
struct Proposal {
  Subnet subnet;
  std::vector<std::int64_t> parents = {};
  Descent how = Descent::drawn;
  bool operator==(const Proposal&) const = default;
};

/// Proposes networks of a space, no network twice: a function of what it is made with and of what it is told.
/// Each draw is a word of the stream (seed, "search", id).
class Searcher {
 public:
  virtual ~Searcher() = default;
  /// The network that is next. It depends on what is told of ids up to its own less the lag, which must have
  /// been told, and on nothing later. Fails with a sentence where none is left.
  virtual Proposal next() = 0;
  /// What the first proposal of which nothing was told has been found to be: its objectives, each the better
  /// the smaller it is. A network of which one is not finite is no parent.
  virtual void tell(std::span<const double> objectives) = 0;
};

/// What a search is made with.
///   random     each block's candidate for itself
///   evolution  when as many as a population are known: half crossovers, each block from one of two parents,
///              half mutations, each block with a probability another candidate; parents are among the best
///              by the first objective
///   pareto     the same, with parents by rank of non-domination and crowding distance (parent_pool.h)
struct SearchRules {
  SearcherKind kind = SearcherKind::evolution;
  std::uint64_t seed = 1;
  std::int64_t lag = 64;  ///< network n is proposed from the results up to n - lag; at least 1
  int population = 50;
  int parents = 10;  ///< best networks that evolution breeds from
  double mutation = 0.1;
};

/// How far a choice misses the limits of a search: 0 where it meets all, else shares of the limits, added up.
using Excess = std::function<double(const std::vector<std::uint8_t>& choice)>;

/// No network among many that were drawn meets the limits.
struct LimitsMissed : Error {
  LimitsMissed(const std::string& sentence, std::vector<std::uint8_t> choice, double by)
      : Error(Exit::bad_configuration, sentence), nearest(std::move(choice)), excess(by) {}
  std::vector<std::uint8_t> nearest;  ///< the one that misses them least
  double excess;                      ///< how far that one misses them
};

/// Throws LimitsMissed where 10,000 networks that are drawn, or all of a space that has no more, miss them.
std::unique_ptr<Searcher> make_searcher(const Space& space, const SearchRules& rules, Excess excess = {});

/// How many networks of a space meet limits, counted up to `enough`; a space of more than a million is not
/// counted, and has enough.
std::int64_t networks_within(const Space& space, const Excess& excess, std::int64_t enough);

}  // namespace mindpipe
