#pragma once
#include <vector>

#include "app/search/score.h"
#include "app/search/trainings.h"

namespace mindpipe {

/// The rounds of successive halving: how many are trained, and the steps that each then has.
struct HalvingRound {
  int networks = 0, steps = 0;
};
/// From `networks` to one: each round keeps one in `factor`, rounded up, for `factor` times the steps.
std::vector<HalvingRound> halving_rounds(int networks, int steps, int factor);

/// A network by the name of its run.
struct NamedChoice {
  std::string name;
  std::vector<std::uint8_t> choice;
};
/// Trains the best networks of a search in rounds, and as many drawn ones, and prints who was left after
/// each. Collective; false: some are still to be trained.
bool halve(const Config& config, const std::vector<NamedChoice>& best, const std::vector<NamedChoice>& drawn,
           Trainings& trainings, const World& world);

}  // namespace mindpipe
