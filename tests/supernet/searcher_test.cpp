#include "supernet/searcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>

#include "supernet/hypervolume.h"
#include "supernet/landscape.h"

namespace mindpipe {
namespace {

using Choice = std::vector<std::uint8_t>;

Space space_of_81() {  // 3 x 1 x 3 x 3 x 1 x 3 = 81 networks
  return space_from(
      "{name: small, decoder: {blocks: [[glu, mlp-1, mlp-2], [glu], [glu, mlp-1, mlp-2], [glu, mlp-1, "
      "mlp-2], "
      "[identity], [glu, mlp-1, mlp-2]]}}");
}

/// Three objectives that pull at each other: a network good in one is no better than others in the rest.
class ThreeObjectives {
 public:
  ThreeObjectives(const Space& space, std::uint64_t seed)
      : loss_(space, seed, "loss", 0.3),
        parameters_(space, seed, "size", 0),
        latency_(space, seed, "time", 0) {}
  Objectives operator()(const Choice& choice) const {
    return {-loss_.below_mean(choice), -parameters_.below_mean(choice), -latency_.below_mean(choice)};
  }

 private:
  Landscape loss_, parameters_, latency_;
};

Searched search_small(const SearchRules& rules, int count, const Excess& excess = {}) {
  return search(space_of_81(), rules, count, ThreeObjectives(space_of_81(), 1), excess);
}

std::vector<Choice> choices_of(const Searched& searched) {
  std::vector<Choice> choices;
  for (const Proposal& proposal : searched.proposals) choices.push_back(proposal.subnet.choice);
  return choices;
}

TEST(Searchers, ProposeNoNetworkTwiceAndASmallSpaceToItsLastOne) {
  const Space space = space_of_81();
  ASSERT_EQ(networks_of(space), 81);
  for (const SearcherKind kind : all_kinds<SearcherKind>())
    for (const std::int64_t lag : {1, 8, 64}) {
      SCOPED_TRACE(fmt::format("{}, lag {}", kind, lag));
      const Searched searched = search_small({.kind = kind, .lag = lag, .population = 10}, 81);
      const std::vector<Choice> choices = choices_of(searched);
      EXPECT_EQ(std::set<Choice>(choices.begin(), choices.end()).size(), 81u);
      for (int id = 0; id < 81; ++id) EXPECT_EQ(searched.proposals[id].subnet.id, id);
      for (const Choice& choice : choices)
        for (int block = 0; block < space.blocks(); ++block)
          ASSERT_LT(choice[block], space.candidates(block).size());
      EXPECT_THROW(search_small({.kind = kind, .lag = lag, .population = 10}, 82), Error);
    }
}

/// How often a search that ends with the last network within limits has made one in some way.
int times_made(const std::string& space_text, const Excess& excess, std::int64_t networks, Descent how) {
  const Space space = space_from(space_text);
  EXPECT_EQ(networks_within(space, excess, 1000), networks);
  const auto score = [](const Choice&) { return Objectives{1}; };
  const SearchRules rules{.kind = SearcherKind::random, .seed = 2};
  const Searched searched = search(space, rules, static_cast<int>(networks), score, excess);
  const std::vector<Choice> choices = choices_of(searched);
  EXPECT_EQ(std::ssize(std::set<Choice>(choices.begin(), choices.end())), networks);
  for (const Choice& choice : choices) EXPECT_EQ(excess(choice), 0);
  return static_cast<int>(std::count_if(searched.proposals.begin(), searched.proposals.end(),
                                        [how](const Proposal& proposal) { return proposal.how == how; }));
}

TEST(Searchers, FindWhatDrawsMissNearOthersOrByCounting) {
  const auto alike = [](const Choice& choice) {  // 28 of 262,144: ten thousand draws find one, or none
    return std::count(choice.begin(), choice.end(), 3) >= 8 ? 0.0 : 1.0;
  };
  EXPECT_GT(times_made("{name: near, decoder: {blocks: 9, candidates: [glu, mlp-1, mlp-2, mlp-3]}}", alike,
                       28, Descent::mutation),
            5);
  const auto apart = [](const Choice& choice) {  // 4 of 16,384, none near another
    return std::count(choice.begin(), choice.end(), choice[0]) == 7 ? 0.0 : 1.0;
  };
  EXPECT_GT(times_made("{name: apart, decoder: {blocks: 7, candidates: [glu, mlp-1, mlp-2, mlp-3]}}", apart,
                       4, Descent::enumerated),
            0);
}

TEST(Searchers, DependOnNothingThatIsToldBeyondTheLag) {
  const Space space = space_from("nlp.c3");
  const ThreeObjectives score(space, 1);
  constexpr int count = 400;
  for (const SearcherKind kind : all_kinds<SearcherKind>()) {
    const SearchRules rules{.kind = kind, .lag = 20};
    const Searched late = search(space, rules, count, score);
    const auto early = make_searcher(space, rules), misled = make_searcher(space, rules);
    for (int id = 0; id < count; ++id) {
      const Proposal proposal = early->next();
      EXPECT_EQ(proposal, late.proposals[id]) << name_of(kind) << ", " << id;
      early->tell(score(proposal.subnet.choice));
    }
    for (int id = 0; id < count; ++id) {
      EXPECT_EQ(misled->next(), late.proposals[id]);
      misled->tell(id <= count - 20 ? late.found[id] : Objectives{-100.0, -100.0, -100.0});
    }
    const Proposal other = early->next();  // what lies beyond its lag would have been its parents
    EXPECT_EQ(misled->next(), other);
    std::vector<Proposal> after, after_misled;
    for (int id = count + 1; id < count + 20; ++id) {
      after.push_back(early->next());
      after_misled.push_back(misled->next());
    }
    EXPECT_EQ(after == after_misled, kind == SearcherKind::random) << "and now it counts";
  }
}

TEST(Searchers, GoOnFromAReplayAsIfTheyHadNotStopped) {
  const Space space = space_from("nlp.c3");
  const ThreeObjectives score(space, 1);
  for (const SearcherKind kind : all_kinds<SearcherKind>()) {
    const SearchRules rules{.kind = kind, .lag = 16};
    const Searched whole = search(space, rules, 300, score);
    const auto again = make_searcher(space, rules);
    for (int id = 0; id < 150; ++id) {
      again->next();
      again->tell(whole.found[id]);
    }
    for (int id = 150; id < 300; ++id) {
      ASSERT_EQ(again->next(), whole.proposals[id]) << name_of(kind) << ", " << id;
      again->tell(whole.found[id]);
    }
    EXPECT_NE(choices_of(search(space, {.kind = kind, .seed = 2, .lag = 16}, 2, score)),
              choices_of(search(space, rules, 2, score)));
  }
}

TEST(Searchers, AskForWhatTheyMustBeTold) {
  const auto searcher = make_searcher(space_of_81(), {.lag = 3});
  EXPECT_THROW(searcher->tell(Objectives{1}), Error) << "nothing is proposed yet";
  for (int id = 0; id < 3; ++id) searcher->next();
  EXPECT_THROW(searcher->next(), Error);
  searcher->tell(Objectives{1, 2});
  EXPECT_EQ(searcher->next().subnet.id, 3);
  EXPECT_THROW(searcher->tell(Objectives{1}), Error) << "the first had two objectives";
}

/// The ids of the best by the first objective among ids up to `last`, ties by id.
std::set<std::int64_t> best_of(const Searched& searched, std::int64_t last, int best) {
  std::vector<std::pair<double, std::int64_t>> scored;
  for (std::int64_t id = 0; id <= last; ++id)
    if (const double loss = searched.found[id][0]; std::isfinite(loss)) scored.emplace_back(loss, id);
  std::sort(scored.begin(), scored.end());
  std::set<std::int64_t> ids;
  for (int i = 0; i < best; ++i) ids.insert(scored[i].second);
  return ids;
}

TEST(Evolution, BreedsHalfByCrossoverAndHalfByMutationOfTheTenBest) {
  const Space space = space_from("nlp.c3");
  const Landscape loss(space, 1, "loss", 0.3);
  const auto score = [&](const Choice& choice) {  // as it happens some networks have none
    const double value = loss.at(choice);
    return Objectives{choice[0] == 5 ? std::nan("") : choice[0] == 6 ? -INFINITY : std::floor(value)};
  };
  const Searched searched = search(space, {}, 2000, score);
  int crossovers = 0, mutations = 0, changed = 0;
  for (const Proposal& proposal : searched.proposals) {
    const std::int64_t id = proposal.subnet.id;
    const Choice& choice = proposal.subnet.choice;
    ASSERT_EQ(proposal.how == Descent::drawn, id < 50 + 64 - 1) << id;
    const std::set<std::int64_t> best = id < 113 ? std::set<std::int64_t>{} : best_of(searched, id - 64, 10);
    for (const std::int64_t parent : proposal.parents) ASSERT_TRUE(best.contains(parent)) << id;
    if (proposal.how == Descent::mutation) {
      ASSERT_EQ(proposal.parents.size(), 1u);
      ++mutations;
      for (int block = 0; block < 48; ++block)
        changed += choice[block] != searched.proposals[proposal.parents[0]].subnet.choice[block];
    } else if (proposal.how == Descent::crossover) {
      ASSERT_EQ(proposal.parents.size(), 2u);
      ASSERT_NE(proposal.parents[0], proposal.parents[1]);
      ++crossovers;
      for (int block = 0; block < 48; ++block)
        ASSERT_TRUE(choice[block] == searched.proposals[proposal.parents[0]].subnet.choice[block] ||
                    choice[block] == searched.proposals[proposal.parents[1]].subnet.choice[block]);
    }
  }
  EXPECT_EQ(crossovers + mutations, 2000 - 113);
  EXPECT_NEAR(crossovers, mutations, 150);
  EXPECT_NEAR(changed / (48.0 * mutations), 0.1, 0.004);
}

TEST(Evolution, TakesTheFirstOfEquals) {
  const Searched searched =
      search(space_from("nlp.c3"), {.lag = 1}, 300, [](const Choice&) { return Objectives{1}; });
  for (const Proposal& proposal : searched.proposals)
    for (const std::int64_t parent : proposal.parents) EXPECT_LT(parent, 10);
}

double deepest(const Space& space, SearcherKind kind, std::uint64_t seed, std::int64_t lag) {
  const Landscape loss(space, seed, "loss", 0.3);
  const auto score = [&](const Choice& choice) { return Objectives{loss.at(choice)}; };
  double most = 0;
  for (const Choice& choice :
       choices_of(search(space, {.kind = kind, .seed = seed, .lag = lag}, 2000, score)))
    most = std::max(most, loss.below_mean(choice));
  return most;
}

double median(std::vector<double> of_ten) {
  std::sort(of_ten.begin(), of_ten.end());
  return (of_ten[4] + of_ten[5]) / 2;
}

TEST(Evolution, EndsEightDeviationsBelowTheMeanInAllOfTenSearches) {
  const Space space = space_from("nlp.c3");
  std::vector<double> with_lag, without, random;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    with_lag.push_back(deepest(space, SearcherKind::evolution, seed, 64));
    without.push_back(deepest(space, SearcherKind::evolution, seed, 1));
    random.push_back(deepest(space, SearcherKind::random, seed, 64));
    EXPECT_GE(with_lag.back(), 8) << seed;
    EXPECT_LE(random.back(), 4.5) << seed;
    EXPECT_GE(random.back(), 2.5) << seed << ": the best of 2,000 deviates";
  }
  EXPECT_GE(median(with_lag), 0.9 * median(without));
  fmt::print(
      "deviations below the mean, medians of ten: evolution {:.2f}, without lag {:.2f}, random {:.2f}\n",
      median(with_lag), median(without), median(random));
}

TEST(Pareto, DominatesTheVolumeOfRandomSearchAndItsFrontHasNoDominatedMember) {
  const Space space = space_from("nlp.c3");
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const ThreeObjectives score(space, seed);
    const auto found = [&](SearcherKind kind) {
      return search(space, {.kind = kind, .seed = seed}, 2000, score).found;
    };
    const std::vector<Objectives> pareto = found(SearcherKind::pareto), random = found(SearcherKind::random);
    const Objectives reference{0, 0, 0};  // a network as good as the mean
    EXPECT_GT(hypervolume(pareto, reference), 2 * hypervolume(random, reference)) << seed;
    const std::vector<std::size_t> front = front_of(pareto);
    EXPECT_GE(front.size(), 20u);
    for (const std::size_t at : front)
      for (const Objectives& other : pareto) ASSERT_FALSE(dominates(other, pareto[at]));
  }
}

TEST(Pareto, GoesToBothEndsWhereNobodyDominates) {
  const Space space = space_from("nlp.c3");
  const Landscape size(space, 1, "size", 0);
  const Searched searched = search(space, {.kind = SearcherKind::pareto}, 1000, [&](const Choice& choice) {
    return Objectives{-size.below_mean(choice), size.below_mean(choice)};
  });
  double least = 0, most = 0;
  for (const Proposal& proposal : searched.proposals) {
    for (const std::int64_t parent : proposal.parents) ASSERT_LE(parent, proposal.subnet.id - 64);
    least = std::min(least, size.below_mean(proposal.subnet.choice));
    most = std::max(most, size.below_mean(proposal.subnet.choice));
  }
  EXPECT_GT(most - least, 8.5) << "draws alone reach 3.4 on both sides";
  fmt::print("ends of a front of two: {:.2f}, {:.2f}\n", least, most);
}

TEST(Pareto, TakesTheFirstOfEquals) {
  const Searched searched =
      search(space_from("nlp.c3"), {.kind = SearcherKind::pareto, .lag = 1}, 1000, [](const Choice&) {
        return Objectives{1, 1};
      });
  double sum = 0, parents = 0;
  for (const Proposal& proposal : searched.proposals)
    for (const std::int64_t parent : proposal.parents) {
      ASSERT_LT(parent, 50);
      sum += static_cast<double>(parent);
      ++parents;
    }
  EXPECT_NEAR(sum / parents, 16, 1.5) << "the lower one of two";
}

TEST(Limits, HoldForEveryProposal) {
  const Space space = space_from("nlp.c3");
  const Landscape loss(space, 1, "loss", 0.3), size(space, 1, "size", 0);
  const auto score = [&](const Choice& choice) { return Objectives{loss.at(choice), size.at(choice)}; };
  for (const SearcherKind kind : all_kinds<SearcherKind>())
    for (const double deviations : {1.0, 3.1}) {  // 16 % of all networks, one in a thousand
      const Excess excess = [&](const Choice& choice) {
        return std::max(0.0, deviations - size.below_mean(choice));
      };
      for (const Choice& choice : choices_of(search(space, {.kind = kind}, 300, score, excess)))
        ASSERT_GE(size.below_mean(choice), deviations) << name_of(kind);
    }
}

TEST(Limits, ThatNoneOfManyMeetAreRefusedWithTheNearest) {
  const Space space = space_from("nlp.c3");
  const Landscape size(space, 1, "size", 0);
  const Excess excess = [&](const Choice& choice) { return std::max(0.0, 9 - size.below_mean(choice)); };
  try {
    make_searcher(space, {}, excess);
    FAIL() << "nine deviations are not drawn";
  } catch (const LimitsMissed& missed) {
    EXPECT_EQ(missed.excess, excess(missed.nearest));
    EXPECT_LT(missed.excess, 9 - 3) << "of 10,000 the best is more than three deviations below the mean";
    EXPECT_THAT(missed.what(), testing::HasSubstr("10000 drawn networks of nlp.c3"));
    EXPECT_THAT(missed.what(), testing::HasSubstr("[" + written(missed.nearest) + "]"));
  }
  // A space that has no more is gone through: its nearest is the nearest of all.
  const Excess never = [](const Choice& choice) { return choice == Choice{2, 0, 1, 0, 0, 2} ? 0.25 : 0.5; };
  try {
    make_searcher(space_of_81(), {}, never);
    FAIL();
  } catch (const LimitsMissed& missed) {
    EXPECT_EQ(missed.nearest, (Choice{2, 0, 1, 0, 0, 2}));
    EXPECT_EQ(missed.excess, 0.25);
  }
}

TEST(Limits, LeaveWhatMeetsThemAndEndASearchWithASentence) {
  const Excess excess = [](const Choice& choice) {
    return choice[0] + choice[2] + choice[3] == 2 ? 0.0 : 1.0;
  };
  const std::int64_t within = networks_within(space_of_81(), excess, 1000);
  EXPECT_EQ(within, 6 * 3);
  EXPECT_EQ(networks_within(space_of_81(), excess, 5), 5);
  EXPECT_EQ(networks_within(space_of_81(), {}, 1000), 81);
  for (const SearcherKind kind : all_kinds<SearcherKind>()) {
    const SearchRules rules{.kind = kind, .lag = 4, .population = 4, .parents = 3};
    const std::vector<Choice> choices = choices_of(search_small(rules, static_cast<int>(within), excess));
    EXPECT_EQ(std::set<Choice>(choices.begin(), choices.end()).size(), 18u);
    try {
      search_small(rules, 19, excess);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      EXPECT_THAT(error.what(), testing::HasSubstr("no more networks of small within its limits after 18"));
    }
  }
}

TEST(Searchers, TakeLittleTimeForAProposal) {
  const Space space = space_from("nlp.c3");
  const ThreeObjectives score(space, 1);
  for (const auto& [kind, most] : {std::pair(SearcherKind::evolution, 1e-3), {SearcherKind::pareto, 5e-3}}) {
    const auto searcher = make_searcher(space, {.kind = kind, .lag = 1});
    for (int id = 0; id < 2000; ++id) searcher->tell(score(searcher->next().subnet.choice));
    const std::clock_t begin = std::clock();
    for (int id = 0; id < 20; ++id) searcher->tell(score(searcher->next().subnet.choice));
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / 20;
    EXPECT_LT(seconds, most) << name_of(kind);
  }
}

}  // namespace
}  // namespace mindpipe
