#include "app/search/network_search.h"

#include <algorithm>
#include <cmath>

#include "config/models/search.h"
#include "config/models/space.h"

namespace mindpipe {

double excess_of(const SearchConfig& search, const NetworkMeasures& measures,
                 const std::vector<std::uint8_t>& choice) {
  double excess = 0;
  for (const Objective objective : all_kinds<Objective>())
    if (const double limit = limit_of(search, objective); limit > 0)
      excess += std::max(0.0, measures.of(objective, choice) / limit - 1);
  return excess;
}

namespace {

Excess excess_within(const SearchConfig& search, const NetworkMeasures& measures) {
  for (const Objective objective : all_kinds<Objective>())
    if (limit_of(search, objective) > 0)
      return [&](const std::vector<std::uint8_t>& choice) { return excess_of(search, measures, choice); };
  return {};
}

/// "parameters 12.3M (at most 10.0M)" of each that has a limit.
std::string against_limits(const SearchConfig& search, const NetworkMeasures& measures,
                           const std::vector<std::uint8_t>& choice) {
  std::string text;
  for (const Objective objective : all_kinds<Objective>())
    if (const double limit = limit_of(search, objective); limit > 0)
      text += fmt::format("{}{} {:.4g} (search.limits.{}: {:.4g})", text.empty() ? "" : ", ",
                          name_of(objective), measures.of(objective, choice), name_of(objective), limit);
  return text;
}

/// Refuses limits that hardly any network meets, or fewer than are to be scored.
std::unique_ptr<Searcher> searcher_within(const Space& space, const SearchRules& rules,
                                          const SearchConfig& search, const NetworkMeasures& measures) {
  const Excess excess = excess_within(search, measures);
  const std::int64_t within = networks_within(space, excess, search.scores);
  try {
    auto searcher = make_searcher(space, rules, excess);
    MP_REQUIRE(within >= search.scores, Exit::bad_configuration,
               "search.scores is {}, but {} networks of model.space, {}, meet search.limits (none is scored "
               "twice)",
               search.scores, within, space.name);
    return searcher;
  } catch (const LimitsMissed& missed) {
    constexpr std::int64_t most_drawn = 10'000;
    const auto meets_all = [](const std::vector<std::uint8_t>&) { return 0.0; };
    const std::int64_t all = networks_within(space, meets_all, most_drawn + 1);
    fail(Exit::bad_configuration,
         "search.limits: none of {} of {} meets them; the nearest has {}: model.choice [{}]",
         all > most_drawn ? std::string("10,000 drawn networks") : fmt::format("the {} networks", all),
         space.name, against_limits(search, measures, missed.nearest), written(missed.nearest));
  }
}

}  // namespace

std::vector<Objective> objectives_of(const SearchConfig& search) {
  std::vector<Objective> objectives;
  for (const std::string& name : search.objectives) objectives.push_back(*kind_named<Objective>(name));
  if (!row_of(search.searcher).has_front) objectives = {Objective::loss};
  return objectives;
}

NetworkSearch::NetworkSearch(const SearchConfig& search, const Space& space, std::uint64_t seed,
                             const NetworkMeasures& measures)
    : search_(search), measures_(measures), told_(objectives_of(search)) {
  searcher_ = searcher_within(space,
                              {.kind = search.searcher,
                               .seed = seed,
                               .lag = row_of(search.searcher).learns ? search.lag : search.scores,
                               .population = search.population,
                               .parents = search.parents,
                               .mutation = search.mutation},
                              search, measures);
}

Score NetworkSearch::proposed() {
  Proposal proposal = searcher_->next();
  Score score;
  score.id = proposal.subnet.id;
  score.parents = std::move(proposal.parents);
  score.how = name_of(proposal.how);
  score.choice = std::move(proposal.subnet.choice);
  for (const Objective objective : all_kinds<Objective>())
    if (objective != Objective::loss) score.value(objective) = measures_.of(objective, score.choice);
  return score;
}

void NetworkSearch::tell(const Score& score) {
  std::vector<double> values;
  for (const Objective objective : told_)
    values.push_back(objective == Objective::loss ? score.rank_loss() : score.value(objective));
  searcher_->tell(values);
}

void NetworkSearch::take_up(const std::vector<Score>& known, const std::string& file) {
  for (const Score& score : known) {
    const Score expected = proposed();
    MP_REQUIRE(
        expected.choice == score.choice && expected.parents == score.parents && expected.how == score.how,
        Exit::bad_data,
        "{}:{}: is not the network that this search scores there (the file was changed, or is of "
        "another version of the program; name another search.dir to begin anew)",
        file, score.id + 1);
    tell(score);
    scores_.push_back(score);
  }
}

std::optional<Subnet> NetworkSearch::next() {
  if (scores_.size() + under_way_.size() == static_cast<std::size_t>(search_.scores)) return std::nullopt;
  under_way_.push_back(proposed());
  return Subnet{under_way_.back().id, under_way_.back().choice};
}

const Score& NetworkSearch::hear(double loss, const std::array<double, 2>& halves) {
  scores_.push_back(std::move(under_way_.front()));
  under_way_.pop_front();
  scores_.back().value(Objective::loss) = loss;
  scores_.back().halves = halves;
  tell(scores_.back());
  return scores_.back();
}

}  // namespace mindpipe
