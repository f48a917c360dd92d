// ranks: 1 2 3 4
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <map>

#include "runtime/parity_cases.h"

namespace mindpipe {
namespace {

constexpr int steps = 4;

World all_ranks() {
  World world{MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  return world;
}

/// What one rank gets for each arithmetic among the cases; the ranks share the work.
class References {
 public:
  explicit References(const std::vector<Config>& cases) {
    const World world = all_ranks();
    for (const Config& c : cases) {
      const Config one = alone(c);
      outcomes_.try_emplace(to_yaml(one));
      configs_.try_emplace(to_yaml(one), one);
    }
    int turn = 0;
    for (auto& [key, words] : outcomes_) {
      words.resize(2 + 2 * steps);
      if (turn++ % world.size == world.rank) words = outcome_of(configs_.at(key), {}, steps).words();
    }
    turn = 0;
    for (auto& [key, words] : outcomes_) MPI_Bcast(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, turn++ % world.size, world.comm);
  }
  Outcome of(const Config& c) const { return Outcome::from(outcomes_.at(to_yaml(alone(c)))); }

 private:
  std::map<std::string, std::vector<std::uint64_t>> outcomes_;
  std::map<std::string, Config> configs_;
};

/// Which layouts to try: a covering choice, or all of them (MINDPIPE_ALL_LAYOUTS=1), or every so manieth of all (a larger number).
std::vector<Config> cases(int ranks) {
  const char* wish = std::getenv("MINDPIPE_ALL_LAYOUTS");
  const int stride = wish == nullptr ? 0 : std::atoi(wish);
  const std::vector<Choice> choices = stride > 0 ? all_choices(ranks) : covering_choices(ranks);
  std::vector<Config> configs;
  for (std::size_t i = 0; i < choices.size(); i += std::max(1, stride)) configs.push_back(config_of(choices[i], ranks));
  return configs;
}

TEST(Parity, EveryLayoutGivesTheBitsOfOneRank) {
  const World world = all_ranks();
  const std::vector<Config> tried = cases(world.size);
  const References references(tried);
  const bool chatty = std::getenv("MINDPIPE_SAY_LAYOUTS") != nullptr;
  for (const Config& config : tried) {
    if (chatty && world.rank == 0) std::fprintf(stderr, "%s\n", describe(config).c_str());
    const Outcome got = outcome_of(config, world.size == 1 ? World{} : world, steps);
    EXPECT_TRUE(std::isfinite(got.losses.back()) && got.losses.back() != got.losses.front()) << describe(config);
    EXPECT_EQ(difference(got, references.of(config)), "") << describe(config);
  }
  if (world.rank == 0) std::printf("%zu layouts of %d ranks\n", tried.size(), world.size);
}

}  // namespace
}  // namespace mindpipe
