#include "app/search/halving.h"

#include <algorithm>
#include <cmath>

#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "core/log.h"

namespace mindpipe {
namespace {

struct Trained {
  NamedChoice network;
  double loss = 0;
};

std::string round_text(const HalvingRound& round, const std::vector<Trained>& trained) {
  std::string text = fmt::format("{:>8} {:>8} ", round.steps, trained.size());
  for (const Trained& one : trained) text += fmt::format(" {} {:.4f}", one.network.name, one.loss);
  return text + "\n";
}

/// The rounds of one group, the survivors' order after each in words; none: some are still to be trained.
std::optional<std::string> rounds_of(const std::vector<HalvingRound>& rounds,
                                     const std::vector<NamedChoice>& group, Trainings& trainings,
                                     const World& world) {
  std::string text;
  std::vector<Trained> survivors;
  for (const NamedChoice& network : group) survivors.push_back({network, 0});
  for (const HalvingRound& round : rounds) {
    survivors.resize(std::min(survivors.size(), static_cast<std::size_t>(round.networks)));
    std::vector<TrainingWish> wishes;
    for (const Trained& one : survivors)
      wishes.push_back({one.network.name, one.network.choice, rounds.back().steps, round.steps});
    const std::vector<std::optional<double>> losses = trainings.train(wishes, world);
    for (std::size_t i = 0; i < survivors.size(); ++i) {
      if (!losses[i]) return std::nullopt;
      survivors[i].loss = *losses[i];
    }
    std::stable_sort(survivors.begin(), survivors.end(), [](const Trained& a, const Trained& b) {
      return std::isnan(b.loss) ? !std::isnan(a.loss) : a.loss < b.loss;
    });
    text += round_text(round, survivors);
  }
  return text;
}

}  // namespace

constexpr int most_steps = 1 << 30;

std::vector<HalvingRound> halving_rounds(int networks, int steps, int factor) {
  std::vector<HalvingRound> rounds{{networks, steps}};
  while (rounds.back().networks > 1) {
    MP_REQUIRE(
        rounds.back().steps <= most_steps / factor, Exit::bad_configuration,
        "search.halving is [{}, {}], and the last of {} networks would be trained for {} steps and more "
        "(take fewer steps, a smaller factor, or a smaller search.best)",
        steps, factor, networks, std::int64_t{rounds.back().steps} * factor);
    rounds.push_back({(rounds.back().networks + factor - 1) / factor, rounds.back().steps * factor});
  }
  return rounds;
}

bool halve(const Config& config, const std::vector<NamedChoice>& best, const std::vector<NamedChoice>& drawn,
           Trainings& trainings, const World& world) {
  const auto rounds =
      halving_rounds(static_cast<int>(best.size()), config.search.halving[0], config.search.halving[1]);
  const auto of_best = rounds_of(rounds, best, trainings, world),
             of_drawn = of_best ? rounds_of(rounds, drawn, trainings, world) : std::nullopt;
  if (world.rank == 0) {
    info("halving: {} trainings now, with {} steps; {} found done{}", trainings.done_now(),
         trainings.steps_now(), trainings.done_before(), trainings.words_on_left(of_drawn ? 0 : 1));
    if (of_drawn)
      print(fmt::format(
          "\nsuccessive halving: validation losses, the lowest first\n{:>8} {:>8}  the best of "
          "the search\n{}{:>17}  {}\n{}",
          "steps", "networks", *of_best, "",
          drawn.size() == best.size()
              ? "as many drawn ones"
              : fmt::format("{} drawn ones, all others that there are: at less cost", drawn.size()),
          *of_drawn));
  }
  return of_drawn.has_value();
}

}  // namespace mindpipe
