#include "config/models/search.h"

#include <algorithm>

#include "config/config.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t fewest_verified = 4;

void check_objectives(const Config& config, const Complaints& complain) {
  const SearchConfig& search = config.search;
  std::vector<std::string> sorted = search.objectives;
  std::sort(sorted.begin(), sorted.end());
  complain.require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "search.objectives",
                   "is [{}], which names one twice", join(search.objectives, ", "));
  if (row_of(search.searcher).has_front)
    complain.require(search.objectives.size() > 1 && search.objectives[0] == name_of(Objective::loss),
                     "search.objectives",
                     "is [{}], but pareto holds the loss against something else ([loss, parameters] for "
                     "instance)",
                     join(search.objectives, ", "));
  complain.require(!asks_for(search, Objective::latency) || !config.device.description.empty(),
                   search.limits.latency > 0 ? "search.limits.latency" : "search.objectives",
                   "asks for the latency, but device.description names no device that would price it (h200 "
                   "for instance, or a file)");
}

void check_numbers(const Config& config, const Complaints& complain) {
  const SearchConfig& search = config.search;
  const std::int64_t networks = networks_of(config.model.supernet.space);
  complain.require(search.scores <= networks, "search.scores",
                   "is {}, but model.space, {}, has {} networks (none is scored twice)", search.scores,
                   config.model.supernet.space.name, networks);
  complain.require(search.parents <= search.population, "search.parents",
                   "is {}, more than the search.population of {} that they are taken from", search.parents,
                   search.population);
  complain.require(search.verify == 0 || (search.verify >= static_cast<int>(fewest_verified)),
                   "search.verify", "is {}, and fewer than {} networks say nothing about ranks ({}, or 0)",
                   search.verify, fewest_verified, fewest_verified);
  complain.require(search.verify <= search.scores, "search.verify", "is {}, but search.scores is {}",
                   search.verify, search.scores);
  complain.require(search.halving.empty() || search.halving.size() == 2, "search.halving",
                   "has {} number{} (two: the steps of the first round, and the factor, like [100, 2])",
                   search.halving.size(), search.halving.size() == 1 ? "" : "s");
  complain.require(search.halving.empty() || search.halving[1] > 1, "search.halving",
                   "has the factor {} (2 or more: each round keeps one in so many)",
                   search.halving.empty() ? 0 : search.halving.back());
}

}  // namespace

std::vector<Setting> search_settings(SearchConfig& s) {
  constexpr double many = 1 << 30;
  constexpr Range count{1, many}, two{2, many}, any_count{0, many}, automatic{1, many, false, false, "auto"},
      limit{0, 1e30};
  std::vector<std::string> objectives;
  for (const ObjectiveRow& row : rows_of(Objective{})) objectives.emplace_back(row.name);
  std::vector<Setting> all;
  const auto add = [&](const char* key, auto* member, const char* meaning, const Range& range = {}) {
    all.push_back(Setting(key, member, meaning, range).playing(Setting::Role::layout));
  };
  add("search.dir", &s.dir, "the directory that a search writes to; empty: search, below run.dir");
  add("search.searcher", &s.searcher,
      "random; evolution (networks made of the best so far); pareto (the front of all search.objectives)");
  add("search.scores", &s.scores, "networks to score, none twice; auto: 480, or all that the space has",
      automatic);
  add("search.batches", &s.batches, "held-out batches (data.validation) that a network is scored on", count);
  add("search.lag", &s.lag,
      "parents of network j are among those before j - lag, so that others are scored meanwhile; the same "
      "on every grid",
      count);
  add("search.population", &s.population, "networks that are drawn before others are made of the best",
      count);
  add("search.parents", &s.parents, "evolution: this many of the best are parents", two);
  add("search.mutation", &s.mutation, "probability that a mutation draws a block again",
      Range{0, 1, true, false});
  add("search.objectives", &s.objectives, "pareto: what is minimized, the loss first");
  all.back() = std::move(all.back()).one_of(objectives);
  add("search.limits.parameters", &s.limits.parameters, "the most parameters of a network; 0: no limit",
      limit);
  add("search.limits.operations", &s.limits.operations,
      "the most operations a token, forward and backward; 0: no limit", limit);
  add("search.limits.latency", &s.limits.latency,
      "the longest forward of one sample on device.description, in seconds; 0: no limit", limit);
  add("search.limits.bytes", &s.limits.bytes, "the most bytes of weights that compute; 0: no limit", limit);
  add("search.best", &s.best, "networks that are written: best-1.yaml and so on", count);
  add("search.steps", &s.steps, "steps of a network that is trained by itself; auto: train.steps", automatic);
  add("search.verify", &s.verify,
      "networks, spread from the best score to the worst, that are trained from scratch to test the scores; "
      "0: none",
      any_count);
  add("search.halving", &s.halving,
      "[steps, factor]: the best, and as many drawn ones, are trained in rounds; each keeps one in `factor` "
      "for `factor` times the steps",
      count);
  return all;
}

int steps_of_networks(const Config& config) {
  return config.search.steps > 0 ? config.search.steps : config.train.steps;
}

bool asks_for(const SearchConfig& search, Objective objective) {
  const bool is_named =
      std::count(search.objectives.begin(), search.objectives.end(), name_of(objective)) > 0;
  return limit_of(search, objective) > 0 || (row_of(search.searcher).has_front && is_named);
}

double limit_of(const SearchConfig& search, Objective objective) {
  switch (objective) {
    case Objective::loss:
      return 0;
    case Objective::parameters:
      return search.limits.parameters;
    case Objective::operations:
      return search.limits.operations;
    case Objective::latency:
      return search.limits.latency;
    case Objective::bytes:
      return search.limits.bytes;
  }
  return 0;
}

void fill_in_search(const Space& space, SearchConfig& search) {
  constexpr std::int64_t usual = 480;
  if (search.scores == 0) search.scores = static_cast<int>(std::min(usual, networks_of(space)));
}

void check_search(const Config& config, const Complaints& complain) {
  check_objectives(config, complain);
  check_numbers(config, complain);
}

}  // namespace mindpipe
