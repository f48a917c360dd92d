#include "supernet/searcher.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "config/models/space.h"
#include "core/random.h"
#include "supernet/parent_pool.h"

namespace mindpipe {
namespace {

using Choice = std::vector<std::uint8_t>;

constexpr int most_children = 100;  // bred for a proposal, before one is drawn
constexpr int most_draws = 10000;   // uniform ones for a proposal, and for the first that meets limits
constexpr std::int64_t most_counted = 1 << 20;  // networks of a space that is gone through one by one

/// The words of a stream in their order.
class Words {
 public:
  Words(std::uint64_t seed, std::string_view purpose, std::int64_t id)
      : stream_{seed, purpose_of(purpose), static_cast<std::uint32_t>(id),
                static_cast<std::uint32_t>(id >> 32)} {}

  std::uint32_t next() {
    if (at_ % 4 == 0) four_ = stream_.words(at_ / 4);
    return four_[at_++ % 4];
  }
  /// A number from 0 to `count` - 1.
  std::uint32_t below(std::size_t count) {
    return static_cast<std::uint32_t>(next() * std::uint64_t{count} >> 32);
  }
  bool happens(double probability) { return next() < probability * 0x1p32; }

 private:
  RandomStream stream_;
  std::uint64_t at_ = 0;
  std::array<std::uint32_t, 4> four_{};
};

Choice any_of(const Space& space, Words& words) {
  Choice choice;
  for (int block = 0; block < space.blocks(); ++block)
    choice.push_back(static_cast<std::uint8_t>(words.below(space.candidates(block).size())));
  return choice;
}

/// Turns a choice into the next one, the last block's candidates first; behind the last network comes the
/// first.
void count_on(const Space& space, Choice& choice) {
  for (int block = space.blocks() - 1; block >= 0; --block) {
    if (++choice[block] < space.candidates(block).size()) return;
    choice[block] = 0;
  }
}

bool meets(const Excess& excess, const Choice& choice) { return !excess || excess(choice) <= 0; }

/// A network that meets limits, and of a space that is small the first one.
Choice one_within(const Space& space, std::uint64_t seed, const Excess& excess) {
  const std::int64_t networks = networks_of(space);
  const bool all = networks <= most_draws;
  Words words(seed, "search limits", 0);
  Choice choice(static_cast<std::size_t>(space.blocks()), 0), nearest;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < (all ? networks : most_draws); ++i) {
    if (!all) choice = any_of(space, words);
    const double by = excess ? excess(choice) : 0;
    if (by <= 0) return choice;
    if (by < least || nearest.empty()) {
      least = by;
      nearest = choice;
    }
    if (all) count_on(space, choice);
  }
  throw LimitsMissed(
      fmt::format(
          "none of {} networks of {} meets the limits of the search; the nearest, [{}], misses them by "
          "{:.3g} % (raise the limits by that)",
          all ? fmt::format("the {}", networks) : fmt::format("{} drawn", most_draws), space.name,
          written(nearest), 100 * least),
      nearest, least);
}

class SpaceSearch final : public Searcher {
 public:
  SpaceSearch(const Space& space, const SearchRules& rules, Excess excess, std::unique_ptr<ParentPool> pool)
      : space_(space),
        rules_(rules),
        excess_(std::move(excess)),
        pool_(std::move(pool)),
        within_(one_within(space, rules.seed, excess_)) {}

  Proposal next() override {
    const std::int64_t id = std::ssize(choices_);
    learn(id - rules_.lag);
    Words words(rules_.seed, "search", id);
    std::optional<Proposal> proposal = bred(words);
    if (!proposal) proposal = drawn(words);
    if (!proposal) proposal = near_another(words);
    if (!proposal) proposal = enumerated(words);
    MP_REQUIRE(proposal, Exit::bad_configuration,
               "a search finds no more networks of {}{} after {}; ask for {} scores at most", space_.name,
               excess_ ? " within its limits" : "", id, id);
    proposal->subnet.id = id;
    proposed_.insert(proposal->subnet.choice);
    choices_.push_back(proposal->subnet.choice);
    return *std::move(proposal);
  }

  void tell(std::span<const double> objectives) override {
    MP_CHECK(told_.size() < choices_.size(), "network {} is told of before it is proposed", told_.size());
    MP_CHECK(!objectives.empty() && (told_.empty() || told_.front().size() == objectives.size()),
             "network {} has {} objectives", told_.size(), objectives.size());
    told_.emplace_back(objectives.begin(), objectives.end());
  }

 private:
  /// Takes what is told of ids up to `last` for known.
  void learn(std::int64_t last) {
    MP_CHECK(last < std::ssize(told_), "network {} is asked for when {} are told of, and its lag is {}",
             choices_.size(), told_.size(), rules_.lag);
    if (!pool_) return;
    for (; known_ <= last; ++known_) {
      const Objectives& found = told_[static_cast<std::size_t>(known_)];
      if (std::all_of(found.begin(), found.end(), [](double value) { return std::isfinite(value); }))
        pool_->add(known_, found);
    }
  }

  bool is_new(const Choice& choice) const { return !proposed_.contains(choice) && meets(excess_, choice); }
  const Choice& choice_of(std::int64_t id) const { return choices_[static_cast<std::size_t>(id)]; }

  Choice mutated(Choice choice, Words& words) const {
    for (int block = 0; block < space_.blocks(); ++block) {
      const std::size_t count = space_.candidates(block).size();
      if (count < 2 || !words.happens(rules_.mutation)) continue;
      choice[block] = static_cast<std::uint8_t>((choice[block] + 1 + words.below(count - 1)) % count);
    }
    return choice;
  }
  Choice crossed(Choice choice, const Choice& other, Words& words) const {
    for (std::size_t block = 0; block < choice.size(); ++block)
      if (words.below(2) == 1) choice[block] = other[block];
    return choice;
  }
  std::int64_t a_parent(Words& words) const {
    const std::uint32_t word = words.next();
    return pool_->pick(word, words.next());
  }
  std::int64_t another_parent(std::int64_t one, Words& words) const {
    std::int64_t other = one;
    for (int attempt = 0; attempt < most_children && other == one; ++attempt) other = a_parent(words);
    return other;
  }

  /// A child of parents that are known; none where too few are, or where their children are known too.
  std::optional<Proposal> bred(Words& words) const {
    if (!pool_ || known_ < rules_.population || pool_->size() < 2) return std::nullopt;
    const bool crosses = words.below(2) == 0;
    for (int attempt = 0; attempt < most_children; ++attempt) {
      Proposal child;
      child.how = crosses == (attempt < most_children / 2) ? Descent::crossover : Descent::mutation;
      child.parents.push_back(a_parent(words));
      if (child.how == Descent::mutation) {
        child.subnet.choice = mutated(choice_of(child.parents[0]), words);
      } else {
        child.parents.push_back(another_parent(child.parents[0], words));
        child.subnet.choice = crossed(choice_of(child.parents[0]), choice_of(child.parents[1]), words);
      }
      if (is_new(child.subnet.choice)) return child;
    }
    return std::nullopt;
  }
  std::optional<Proposal> drawn(Words& words) const {
    for (int attempt = 0; attempt < most_draws; ++attempt)
      if (Choice choice = any_of(space_, words); is_new(choice)) return Proposal{{0, std::move(choice)}};
    return std::nullopt;
  }
  /// Where limits leave so little that draws miss it: a mutation of what has been proposed, or the network
  /// that was found to meet them first.
  std::optional<Proposal> near_another(Words& words) const {
    if (is_new(within_)) return Proposal{{0, within_}};
    for (int attempt = 0; attempt < most_draws; ++attempt) {
      const std::int64_t parent = words.below(choices_.size());
      if (Choice choice = mutated(choice_of(parent), words); is_new(choice))
        return Proposal{{0, std::move(choice)}, {parent}, Descent::mutation};
    }
    return std::nullopt;
  }
  std::optional<Proposal> enumerated(Words& words) const {
    const std::int64_t networks = networks_of(space_);
    if (networks > most_counted) return std::nullopt;
    Choice choice = any_of(space_, words);
    for (std::int64_t i = 0; i < networks; ++i) {
      if (is_new(choice)) return Proposal{{0, std::move(choice)}, {}, Descent::enumerated};
      count_on(space_, choice);
    }
    return std::nullopt;
  }

  Space space_;
  SearchRules rules_;
  Excess excess_;
  std::unique_ptr<ParentPool> pool_;  ///< none: nothing is bred
  Choice within_;
  std::vector<Choice> choices_;  ///< choices that have been proposed
  std::set<Choice> proposed_;
  std::vector<Objectives> told_;
  std::int64_t known_ = 0;  ///< how many of them count by now
};

std::unique_ptr<ParentPool> pool_for(const SearchRules& rules) {
  switch (rules.kind) {
    case SearcherKind::random:
      return nullptr;
    case SearcherKind::evolution:
      return pool_of_the_best(rules.parents);
    case SearcherKind::pareto:
      return pool_of_ranks(rules.population);
  }
  fail(Exit::internal, "a searcher of no kind");
}

}  // namespace

std::unique_ptr<Searcher> make_searcher(const Space& space, const SearchRules& rules, Excess excess) {
  MP_CHECK(rules.lag >= 1 && rules.population >= 2 && rules.parents >= 2 && rules.mutation > 0,
           "a lag of {}, a population of {}, {} parents, {} of blocks mutated", rules.lag, rules.population,
           rules.parents, rules.mutation);
  return std::make_unique<SpaceSearch>(space, rules, std::move(excess), pool_for(rules));
}

std::int64_t networks_within(const Space& space, const Excess& excess, std::int64_t enough) {
  const std::int64_t networks = networks_of(space);
  if (!excess || networks > most_counted) return std::min(networks, enough);
  Choice choice(static_cast<std::size_t>(space.blocks()), 0);
  std::int64_t within = 0;
  for (std::int64_t i = 0; i < networks && within < enough; ++i) {
    within += meets(excess, choice);
    count_on(space, choice);
  }
  return within;
}

}  // namespace mindpipe
