#include <gtest/gtest.h>

#include <algorithm>

#include "program/folded.h"

// What folding sums over data under passes gives, where messages and sums meet at ports: 4 stages, 16
// micro-batches, messages of 0.02 and parts of 0.1 of a stage's forward.
namespace mindpipe {
namespace {

/// Forwards of a stage that sums take which are 20, 28 and 44 % of 1f1b's step.
constexpr double folded_shares[] = {0.2 * 71.9, 0.28 * 79.9, 0.44 * 102.8};
struct FoldedRow {
  const char* schedule;
  int chunks;
  int last_group;  ///< micro-batches whose backwards of a chunk follow each other at the end
  double folded[3], unfolded[3], in_one_piece[3];
  MicroBatchGroups groups = {};
};
const FoldedRow folded_rows[] = {
    {"1f1b", 1, 1, {71.9, 79.9, 102.8}, {71.9, 79.9, 102.8}, {71.9, 79.9, 102.8}},
    {"interleaved", 4, 4, {58.9, 66.9, 89.7}, {65.2, 73.2, 96.1}, {63.6, 71.6, 94.4}},
    {"breadth-first", 4, 16, {53.8, 55.8, 72.0}, {64.8, 72.8, 95.6}, {63.3, 71.3, 94.2}},
    {"breadth-first", 2, 16, {59.3, 63.3, 81.2}, {67.0, 75.0, 97.9}, {66.1, 74.1, 96.9}},
    {"elastic", 4, 8, {54.2, 61.2, 84.0}, {65.2, 73.2, 96.0}, {63.7, 71.7, 94.6}, {{4, 4, 4, 4}, {4, 4, 8}}}};

/// Calls see(row, share, step) for each row and share.
template <class See>
void for_folded_rows(const See& see) {
  for (const FoldedRow& row : folded_rows)
    for (int share = 0; share < 3; ++share) {
      SCOPED_TRACE(std::string(row.schedule) + " of " + std::to_string(row.chunks) + " chunks, share " +
                   std::to_string(share));
      see(row, share, Folded(row.schedule, row.chunks, folded_shares[share], row.groups));
    }
}

TEST(FoldedSums, TakeTheTimeOfTheTable) {
  for_folded_rows([](const FoldedRow& row, int share, const Folded& step) {
    EXPECT_NEAR(step.folded(), row.folded[share], 0.015 * row.folded[share]);
    EXPECT_NEAR(step.unfolded(), row.unfolded[share], 0.015 * row.unfolded[share]);
    EXPECT_NEAR(step.in_one_piece(), row.in_one_piece[share], 0.015 * row.in_one_piece[share]);
  });
}

TEST(FoldedSums, AreExposedAsTheFormulaSays) {
  for_folded_rows([](const FoldedRow& row, int, const Folded& step) {
    const double of_chunk = step.sums / row.chunks, hidden = 2.0 * row.last_group / row.chunks;
    const double exposed = of_chunk + (row.chunks - 1) * std::max(0.0, of_chunk - hidden);
    EXPECT_NEAR(step.exposed(), exposed / step.sums, 0.04);
  });
}

TEST(FoldedSums, LeaveOfGathersWhatTheFormulaSays) {
  for (const FoldedRow& row : folded_rows) {
    const double gathers = 0.15 * 71.9;
    const Folded step(row.schedule, row.chunks, 2 * gathers, row.groups, true);
    const int first_group = row.groups.forward.empty() ? row.last_group : row.groups.forward.front();
    const double of_chunk = gathers / row.chunks, hidden = 1.0 * first_group / row.chunks;
    const double exposed = of_chunk + (row.chunks - 1) * std::max(0.0, of_chunk - hidden);
    EXPECT_LE(step.folded() - step.without(ActionKind::gather), exposed + 0.1 * gathers)
        << row.schedule << " of " << row.chunks << " chunks";
  }
}

TEST(FoldedSums, HoldAMessageUpForOnePartAtMost) {
  for_folded_rows([](const FoldedRow&, int, const Folded& step) {
    EXPECT_LE(step.slow_message(),
              static_cast<double>(Folded::message + Folded::part) / Folded::forward + 1e-6);
  });
}

TEST(FoldedSums, OfAnElasticScheduleTakeHalfTheTapes) {
  const Folded step("elastic", 4, folded_shares[0], {{4, 4, 4, 4}, {4, 4, 8}});
  EXPECT_NEAR(peak_tapes(step.step.program, step.outline)[0] / 4.0, 7.8, 0.05);
  const Folded all("breadth-first", 4, folded_shares[0]);
  EXPECT_EQ(peak_tapes(all.step.program, all.outline)[0], 4 * 16);
}

}  // namespace
}  // namespace mindpipe
