#include "program/lists/stretches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "core/check.h"
#include "program/check/check_communication.h"
#include "program/clock/task_graph.h"
#include "program/sample_space.h"

// A supernet's program, written a stretch at a time: what is written is sound on all ranks, runs as planned,
// and what is wrong with a list is found.
namespace mindpipe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// Small numbers that follow from a seed alone.
class Choices {
 public:
  explicit Choices(unsigned seed) : random_(seed) {}
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

 private:
  std::mt19937 random_;
};

TEST(Stretches, AllRanksListsTogetherAreSoundWhateverTheGridAndTheRooms) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Choices choose(seed);
    const int stages = 1 + choose.below(8), micro_batches = 1 + choose.below(4);
    Outline outline = sample_space(stages, 1 + choose.below(6), micro_batches);
    outline.data = 1 + choose.below(2);
    if (choose.below(2) == 0) share_a_table(outline);
    SubnetRules rules;
    rules.order = static_cast<SubnetOrder>(choose.below(3));
    rules.admission = stages + choose.below(2 * stages);
    rules.window = 1 + choose.below(20);
    rules.holds_back = choose.below(2) == 0;
    for (int stage = 0; stage < stages && rules.order != SubnetOrder::bulk; ++stage) {
      rules.slots.push_back(micro_batches + choose.below(2 * micro_batches));
      rules.slabs.push_back(1 + choose.below(3));
    }
    Network network = sample_network(micro_batches);
    network.data.latency = choose.below(100'000);
    const auto subnets = sample_subnets(outline, Draw::uniform, 20 + choose.below(80), seed);
    const WholeProgram whole =
        whole_program(outline, network, rules, subnets, {1 + choose.below(40), 1 + choose.below(40)});
    Findings findings;
    check_partners(whole.program, findings);
    EXPECT_THAT(findings.take(), IsEmpty()) << seed;
    EXPECT_THAT(errors_of_clock(outline, network, rules, subnets, 17), IsEmpty()) << seed;
    EXPECT_TRUE(simulate(whole.program, whole.durations, network).finished) << seed;
  }
}

TEST(Stretches, TheSimulatorRunsTheListsInThePlannersTime) {
  for (const int micro_batches : {1, 4}) {
    const Outline outline = sample_space(8, 24, micro_batches);
    const Network network = sample_network(micro_batches);
    const auto subnets = sample_subnets(outline, Draw::permutation, 100, 1);
    const WholeProgram whole = whole_program(outline, network, {.admission = 100}, subnets, {64});
    EXPECT_EQ(simulate(whole.program, whole.durations, network).step, whole.planned);
  }
}

/// Lets what arrives with forwards lie in rings of `depth` buffers instead of slots: a receive waits for the
/// reader of the one so many before it.
void use_rings(Program& program, int depth) {
  for (auto& list : program.ranks) {
    std::map<std::pair<std::int64_t, int>, int> reader;
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (is_forward(list[i])) reader[{list[i].owner.number, list[i].micro_batch}] = i;
    std::vector<int> arrived;
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      if (list[i].payload != Payload::activation || sends(list[i])) continue;
      if (static_cast<int>(arrived.size()) >= depth) {
        const Action& before = list[arrived[arrived.size() - depth]];
        list[i].after.push_back(reader.at({before.owner.number, before.micro_batch}));
      }
      arrived.push_back(i);
    }
  }
}

TEST(Stretches, ArrivalsInRingsAreRefusedAsADeadlock) {
  const Outline outline = sample_space(8, 24, 1);
  const auto subnets = sample_subnets(outline, Draw::uniform, 300, 1);
  WholeProgram whole = whole_program(outline, sample_network(1), {.admission = 16}, subnets, {64});
  for (const int depth : {2, 4}) {
    Program program = whole.program;
    use_rings(program, depth);
    Findings findings;
    explain_standstill(program, findings);
    EXPECT_THAT(findings.take(), Contains(HasSubstr("the lists deadlock"))) << depth;
  }
}

// The planner does not know of one candidate's unit, so that it drops the conflicts over this unit alone.
TEST(Stretches, AConflictThatIsDroppedIsFound) {
  const Outline outline = sample_space(4, 24, 1);
  const SubnetRules rules{.admission = 16};
  const auto subnets = sample_subnets(outline, Draw::uniform, 200, 1);
  int found = 0;
  for (int candidate = 0; candidate < 24; ++candidate) {
    Outline blind = outline;
    blind.units_used[20][candidate].clear();
    CausalPlanner planner(blind, sample_network(1), rules);
    const ListStretch list = list_of_starts(outline, rules.window, 1, planned(planner, subnets));
    ListCheck check(outline, rules, 1);
    check.know(subnets, 0);
    const auto errors = check.check(list.actions, true);
    const int unit = outline.units_used[20][candidate][0];
    EXPECT_THAT(errors, testing::Each(HasSubstr(fmt::format("of unit {}, which", unit))));
    found += errors.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 0) << "where no other unit keeps the users apart";
}

#ifdef __SANITIZE_ADDRESS__
constexpr double patience = 10;
#else
constexpr double patience = 1;
#endif

// Time of the processor for 64 subnets over 16 stages, the median of those amid a run: a third of what is
// allowed on one core of a Zen 4.
TEST(Stretches, ArePlannedWrittenAndCheckedInMilliseconds) {
  for (const auto& [micro_batches, most_ms] : {std::pair{1, 4.0}, {4, 10.0}}) {
    const Outline outline = sample_space(16, 96, micro_batches);
    const auto subnets = sample_subnets(outline, Draw::permutation, 64 * 6, 1);
    std::vector<double> times;
    for (int turn = 0; turn < 5; ++turn) {
      Stretches stretches(outline, sample_network(micro_batches), {.admission = 32}, {7});
      for (int i = 0; i < 6; ++i) {
        const std::clock_t start = std::clock();
        stretches.next(std::span(subnets).subspan(64 * i, 64), i == 5);
        const double took = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
        if (i > 0 && i < 5) times.push_back(took);
      }
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    const double median = times[times.size() / 2];
    RecordProperty("milliseconds_" + std::to_string(micro_batches), std::to_string(median));
    EXPECT_LT(median, patience * most_ms) << micro_batches << " micro-batches";
  }
}

}  // namespace
}  // namespace mindpipe
