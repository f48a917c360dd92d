// ranks: 2 4 8, thorough ranks: 1 2 3 4 5 6 8 10 12 16
#include "random_supernets.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "runtime/supernet_runs.h"

// Supernets that are drawn, with grids, windows and rooms of their own, train to the bits of one after the
// other, or are refused before anything starts.
namespace mindpipe {
namespace {

/// All of them that have so many ranks; of a quick test the first few.
std::vector<int> numbers_on(int ranks) {
  const char* tier = std::getenv("MINDPIPE_CASES");
  const bool is_quick = tier != nullptr && std::string_view(tier) == "quick";
  const std::size_t most = is_quick ? 4 : random_supernets;
  std::vector<int> numbers;
  for (int number = 1; number <= random_supernets && numbers.size() < most; ++number)
    if (RandomSupernet(number).ranks() == ranks) numbers.push_back(number);
  return numbers;
}

/// The settings of a run and its plan; a sentence where it is refused.
struct Verdict {
  Config config;
  std::optional<RunPlan> plan;
  std::string refusal;
};

/// Every other one is planned once more, with prices, rooms and an order that are drawn.
Verdict verdict_on(const RandomSupernet& drawn, int number) {
  Verdict verdict;
  try {
    verdict.config = drawn.read();
    const std::vector<Subnet> subnets = first_of_stream(verdict.config);
    verdict.plan = make_run_plan(verdict.config, Purpose::training, subnets);
    if (number % 2 == 0) verdict.plan = drawn_plan(verdict.config, subnets, number);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << drawn.name() << ": " << error.what();
    verdict.refusal = error.what();
  }
  return verdict;
}

TEST(RandomRuns, HaveTheBitsOfOneAfterTheOtherOrAreRefused) {
  const World world = all_ranks();
  int passed = 0, refused = 0, failed = 0;
  for (const int number : numbers_on(world.size)) {
    const RandomSupernet drawn(number);
    Verdict verdict = verdict_on(drawn, number);
    if (!verdict.refusal.empty()) {
      ++refused;
      continue;
    }
    const SubnetsOutcome got =
        trained(verdict.config, world, number,
                {.plan = [&](const Config&, const std::vector<Subnet>&, int) { return *verdict.plan; }});
    if (world.rank != 0) continue;
    const std::string differs = difference(got, one_after_the_other(verdict.config));
    EXPECT_EQ(differs, "") << drawn.name();
    ++(differs.empty() ? passed : failed);
    if (std::getenv("MINDPIPE_ALL_SUBNETS") == nullptr) continue;
    std::printf("%s %s\n", differs.empty() ? "same bits:" : "OTHER BITS:", drawn.name().c_str());
    std::fflush(stdout);
  }
  if (world.rank != 0) return;
  EXPECT_GT(passed, 0);
  std::printf("%d ranks: %d runs passed, %d failed, %d refused\n", world.size, passed, failed, refused);
}

}  // namespace
}  // namespace mindpipe
