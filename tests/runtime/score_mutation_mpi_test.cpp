// thorough ranks: 2
#include <gtest/gtest.h>

#include <map>

#include "comm/fault_points.h"
#include "runtime/ranks.h"
#include "runtime/scores.h"

// What may go wrong where scores are in flight, one thing at a time, and who finds it:
//
//   a message that arrives where another is read    checker   InForwards/IsFound: AMessageThatArrivesWhere...
//   a batch that goes before the one before it      checker   InForwards/IsFound: ABatchBeforeTheOneBeforeIt
//   a batch through the network before it           hash      here, forwards.load
//   what is found of a batch lost, or counted twice hash      here, forwards.tell and forwards.clear
//   a message left out                              hash      here
//   one score heard of in another's place           hash      Scores: no two of them are the same
namespace mindpipe {
namespace {

constexpr int mutated_networks = 4;

class ScoreMutations : public ::testing::Test {
 protected:
  static std::vector<Evaluation> scores_on(const GridConfig& grid, const World& world) {
    Worker worker(config_of_scores(Precision::f32, grid), world);
    share_processors(worker);
    return scores_of(worker, {.networks = mutated_networks}).scores;
  }
  bool noticed(const GridConfig& grid, const std::string& name, int number) const {
    set_mutation(name, number);
    int differs = scores_on(grid, world) == wanted ? 0 : 1;
    calls = mutable_calls();
    set_mutation("");
    MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MAX, world.comm);
    return differs == 1;
  }
  /// How often a run asks for this, on the rank that does so most often.
  int calls_of(const std::string& name) const {
    const auto found = calls.find(name);
    int most = found == calls.end() ? 0 : found->second;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, world.comm);
    return most;
  }

  World world = all_ranks();
  std::vector<Evaluation> wanted = [] {
    std::vector<Evaluation> all = PlainScores(config_of_scores(Precision::f32)).scores();
    all.resize(mutated_networks);
    return all;
  }();
  mutable std::map<std::string, int> calls;
};

TEST_F(ScoreMutations, OfEachThingAloneAreNoticedAndNothingElseIs) {
  std::string said;
  for (const GridConfig& grid : {GridConfig{1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2}}) {
    ASSERT_FALSE(noticed(grid, "nothing.at_all", -1));
    std::map<std::string, int> counts;
    for (const std::string name :
         {"forwards.load", "forwards.tell", "forwards.clear", "message.1.0>1", "message.2.0>1"})
      counts[name] = calls_of(name);
    EXPECT_GT(counts["forwards.load"], 0);
    for (const auto& [name, count] : counts) {
      said += fmt::format(" {} x {}", count, name);
      // Before the first batch nothing else is there; behind the last nothing is counted any more.
      const int first = name == "forwards.load" ? 1 : 0, last = count - (name == "forwards.clear" ? 1 : 0);
      for (int number = first; number < last; ++number)
        EXPECT_TRUE(noticed(grid, name, number))
            << name << " number " << number << " of " << count << " on " << grid.pipeline << " x "
            << grid.data << " x " << grid.tensor << " can be left out without a test failing";
    }
  }
  if (world.rank == 0) std::printf("left out, one at a time:%s\n", said.c_str());
}

}  // namespace
}  // namespace mindpipe
