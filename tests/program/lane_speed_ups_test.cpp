// thorough
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "program/sample_space.h"

// How much faster lanes and own cuts make the training of subnets, on paper. That plans are what they were,
// which these follow from, plans_test.cpp shows.
namespace mindpipe {
namespace {

/// One stage's time for 480 subnets over theirs; the median of five streams.
double speed_up(const Outline& outline, Draw draw, bool holds_back = false) {
  std::vector<double> found;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CausalPlanner planner(outline, sample_network(outline.micro_batches),
                          {.admission = 2 * outline.ranks(), .holds_back = holds_back});
    std::int64_t sum = 0, end = 0;
    for (const Task& start : planned(planner, sample_subnets(outline, draw, 480, seed))) {
      if (start.kind != TaskKind::forward && start.kind != TaskKind::backward) continue;
      sum += start.end - start.start;
      end = std::max(end, start.end);
    }
    found.push_back(static_cast<double>(sum) / static_cast<double>(end));
  }
  std::sort(found.begin(), found.end());
  return found[2];
}

TEST(LaneSpeedUps, AreWhatTheRuleCanGive) {
  struct Known {
    int lanes, stages, candidates, micro_batches;
    Draw draw;
    double speed_up, streams_differ_by;
  };
  for (const Known& known : {Known{2, 4, 96, 1, Draw::uniform, 2.64, 0.04},
                             {2, 4, 96, 4, Draw::uniform, 4.67, 0.04},
                             {2, 8, 96, 1, Draw::permutation, 14.63, 0.015},
                             {4, 8, 96, 1, Draw::permutation, 26.29, 0.02},
                             {2, 8, 96, 4, Draw::permutation, 15.74, 0.01},
                             {4, 8, 96, 4, Draw::permutation, 30.64, 0.01},
                             {2, 8, 24, 4, Draw::uniform, 3.70, 0.04},
                             {2, 8, 24, 1, Draw::permutation, 10.95, 0.02},
                             {4, 8, 24, 1, Draw::permutation, 15.36, 0.02},
                             {2, 8, 24, 4, Draw::permutation, 14.53, 0.01},
                             {2, 8, 24, 1, Draw::spaced, 12.58, 0.02},
                             {2, 8, 24, 4, Draw::spaced, 15.83, 0.01},
                             {4, 4, 96, 4, Draw::permutation, 15.65, 0.01},
                             {4, 4, 24, 4, Draw::permutation, 14.02, 0.02}})
    EXPECT_NEAR(speed_up(sample_lanes(known.lanes, known.stages, known.candidates, known.micro_batches, 0.5),
                         known.draw),
                known.speed_up, known.streams_differ_by * known.speed_up)
        << known.lanes << " lanes of " << known.stages << " stages, " << known.candidates << " candidates, "
        << known.micro_batches << " micro-batches, draw " << static_cast<int>(known.draw);
}

TEST(LaneSpeedUps, SubnetsWithCutsOfTheirOwnLoseLessWhereCandidatesCostUnlike) {
  struct Known {
    int lanes, stages, candidates, micro_batches;
    Draw draw;
    double one_cut, own_cuts;
  };
  for (const Known& known : {Known{1, 8, 96, 1, Draw::uniform, 2.52, 2.50},
                             {1, 8, 96, 4, Draw::uniform, 4.85, 5.53},
                             {1, 8, 96, 1, Draw::permutation, 6.26, 7.01},
                             {1, 8, 96, 4, Draw::permutation, 6.71, 7.60},
                             {1, 8, 96, 4, Draw::spaced, 6.79, 7.64},
                             {1, 8, 24, 4, Draw::spaced, 6.98, 7.64},
                             {1, 16, 96, 4, Draw::permutation, 11.5, 13.9},
                             {2, 8, 96, 4, Draw::permutation, 12.9, 14.7},
                             {4, 4, 96, 4, Draw::permutation, 13.6, 15.2}}) {
    Outline outline = sample_space(known.stages, known.candidates, known.micro_batches);
    price_h200(outline);
    give_lanes(outline, known.lanes, 0.5);
    const double one_cut = speed_up(outline, known.draw);
    outline.own_cuts = true;
    const double own_cuts = speed_up(outline, known.draw);
    const std::string name = fmt::format(
        "{} lanes of {} stages, {} candidates, {} micro-batches, draw {}: {:.2f} "
        "with one cut, {:.2f} with own cuts",
        known.lanes, known.stages, known.candidates, known.micro_batches, static_cast<int>(known.draw),
        one_cut, own_cuts);
    fmt::print("{}\n", name);
    EXPECT_GE(one_cut, 0.98 * known.one_cut) << name;
    EXPECT_GE(own_cuts, 0.97 * known.own_cuts) << name;
    EXPECT_GE(own_cuts, 0.97 * one_cut) << name;
  }
}

}  // namespace
}  // namespace mindpipe
