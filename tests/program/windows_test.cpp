#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/check.h"
#include "lots.h"
#include "program/check/check_communication.h"
#include "program/sample_space.h"

// Windows of fewer subnets than there are lanes, or hardly more: a lane of short subnets ends its window
// before another lane, amid a long pass, has applied the window of two before.
namespace mindpipe {
namespace {

using testing::IsEmpty;

/// How long a subnet's blocks take: next to nothing, a little, as long as such subnets mostly do, or far
/// longer.
enum class Length { least, little, usual, most };
constexpr int lengths = 4, apart = 6;  // subnets that share nothing but the table

/// Lanes of subnets that are short or long, and a table that all share.
Outline short_and_long(int lanes, int stages, int micro_batches) {
  constexpr std::int64_t hundredths[lengths] = {0, 2, 100, 4000};
  Outline outline = sample_lanes(lanes, stages, lengths * apart, micro_batches, 0.1);
  for (auto& candidates : outline.blocks)
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      candidates[k].forward = 1 + candidates[k].forward * hundredths[k % lengths] / 100;
      candidates[k].backward = 2 * candidates[k].forward;
    }
  share_a_table(outline);
  return outline;
}

using LengthOf = std::function<Length(int id)>;

std::vector<Subnet> subnets_of(const Outline& outline, int count, const LengthOf& length_of) {
  std::vector<Subnet> subnets;
  for (int id = 0; id < count; ++id) {
    subnets.push_back({id, std::vector<std::uint8_t>(outline.all_blocks(), 0)});
    for (int block = 1; block + 1 < outline.all_blocks(); ++block)
      subnets.back().choice[block] =
          static_cast<std::uint8_t>(lengths * (id % apart) + static_cast<int>(length_of(id)));
  }
  return subnets;
}

/// What arrives for a window stands behind the update of two windows before, whose room it takes. Returns how
/// many arrivals there were.
int arrivals_behind_updates(const Program& program) {
  int arrivals = 0;
  for (const auto& list : program.ranks) {
    std::map<std::int64_t, int> updated;  // of each window, the place of its last update
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const Action& action = list[i];
      if (action.kind == ActionKind::update && names_unit(action)) updated[action.owner.number] = i;
      if (action.payload != Payload::unit_gradient || action.kind != ActionKind::receive) continue;
      ++arrivals;
      EXPECT_TRUE(action.owner.number < 2 || updated.contains(action.owner.number - 2))
          << "window " << action.owner.number;
    }
  }
  return arrivals;
}

void expect_sound(const Outline& outline, std::span<const Subnet> subnets, std::int64_t window,
                  const std::string& name) {
  const SubnetRules rules{.admission = 2 * outline.ranks(), .window = window};
  const Network network = sample_network(outline.micro_batches);
  try {
    const WholeProgram whole = whole_program(outline, network, rules, subnets, {7, 16});
    Findings findings;
    check_partners(whole.program, findings);
    EXPECT_THAT(findings.take(), IsEmpty()) << name;
    EXPECT_THAT(errors_of_clock(outline, network, rules, subnets, 17), IsEmpty()) << name;
    EXPECT_TRUE(simulate(whole.program, whole.durations, network).finished) << name;
    EXPECT_GT(arrivals_behind_updates(whole.program), 0) << name;
  } catch (const Error& error) {
    ADD_FAILURE() << name << ": " << error.what();
  }
}

// Subnet 4 begins before subnet 3 ends. It is amid its forward when lanes 1 and 2 have applied window 3, and
// subnet 5 has ended.
TEST(Windows, OfOneSubnetOnFourLanesWaitForALongOne) {
  const Outline outline = short_and_long(4, 1, 1);
  const auto length_of = [](int id) {
    constexpr Length of_lane[] = {Length::most, Length::least, Length::least, Length::usual};
    return of_lane[id % 4];
  };
  expect_sound(outline, subnets_of(outline, 48, length_of), 1, "lane 0 is long");
}

TEST(Windows, OfAboutAsManySubnetsAsLanesAreSound) {
  for (const int lanes : {2, 3, 4, 8})
    for (const int stages : {1, 2})
      for (const int micro_batches : {1, 4})
        for (std::int64_t window = 1; window <= lanes + 1; ++window) {
          const Outline outline = short_and_long(lanes, stages, micro_batches);
          Lots lots("lengths", static_cast<int>(window) + 10 * lanes);
          std::vector<Length> drawn;
          for (int id = 0; id < 40; ++id) drawn.push_back(static_cast<Length>(lots.below(lengths)));
          expect_sound(outline, subnets_of(outline, 40, [&](int id) { return drawn[id]; }), window,
                       fmt::format("{} lanes of {} stages, {} micro-batches, window {}", lanes, stages,
                                   micro_batches, window));
        }
}

}  // namespace
}  // namespace mindpipe
