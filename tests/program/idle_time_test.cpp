#include <gmock/gmock.h>

#include <algorithm>

#include "program/make_program.h"
#include "program/sample_outline.h"

// How long stages stand idle by each schedule, as the page on layouts says.
namespace mindpipe {
namespace {

constexpr int stages = 8, micro_batches = 32;

struct Seen {
  double idle, tapes;  ///< percent of the step; tapes of the stage that has the most, in 1f1b's
};

/// A schedule on equal stages whose tapes are GPT-2's on GPUs, with messages that take so long.
Seen seen(std::string_view schedule, const StageTimes& times, std::int64_t message) {
  Network network;
  network.message.latency = message;
  const Outline outline = stages_of_gpt2(schedule, stages, micro_batches, times);
  const PlannedStep step = make_program(outline, schedule, network);
  std::int64_t tapes = 0;
  for (const RankMemory& rank : step.placement.ranks)
    tapes = std::max(tapes, rank.bytes[static_cast<int>(MemoryClass::activations)]);
  const double busy = static_cast<double>(micro_batches * (times.forward + times.backward));
  return {100 * (1 - busy / static_cast<double>(step.expected.step)),
          static_cast<double>(tapes) / static_cast<double>(tapes_of_1f1b(outline))};
}

TEST(IdleTime, OfEachScheduleIsAsPublishedOrLess) {
  struct Row {
    const char* schedule;
    double equal, unequal, tapes;
  };
  for (const Row& row : {Row{"1f1b", 17.9, 20.2, 1.0},
                         {"interleaved", 9.9, 11.1, 1.5},
                         {"zb-h1", 8.6, 12.2, 1.1},
                         {"zb-v", 3.5, 5.8, 1.1},
                         {"dualpipe-v", 3.5, 5.8, 1.13},
                         {"v-half", 8.6, 13.6, 0.77}}) {
    const Seen equal = seen(row.schedule, {12000, 24000, 12000, 12000}, 0),
               unequal = seen(row.schedule, {12000, 25200, 15600, 9600}, 600);
    std::printf("%s: idle %.2f %% (%.2f), tapes %.3f (%.3f)\n", row.schedule, equal.idle, unequal.idle,
                equal.tapes, unequal.tapes);
    EXPECT_LE(equal.idle, row.equal + 0.05) << row.schedule;
    EXPECT_LE(unequal.idle, row.unequal + 0.05) << row.schedule;
    EXPECT_LE(std::max(equal.tapes, unequal.tapes), row.tapes) << row.schedule;
  }
}

}  // namespace
}  // namespace mindpipe
