#include "program/place.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "program/check/check_slab.h"
#include "program/make_program.h"
#include "program/sample_outline.h"
#include "program/schedules/pass_clock.h"

namespace mindpipe {
namespace {

std::int64_t bytes_of(const RankMemory& memory, MemoryClass kind) {
  return memory.bytes[static_cast<int>(kind)];
}

TEST(Place, OneArenaForEachTapeInFlight) {
  for (const std::string& schedule : all_schedules())
    for (int m : {1, 3, 8}) {
      const Outline outline = equal_stages_for(schedule, 4, m);
      const PlannedStep step = make_program(outline, schedule);
      const auto held = peak_tapes(step.program, outline);
      for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(step.placement.ranks[rank].arenas, held[rank]) << schedule << ' ' << m;
        EXPECT_EQ(bytes_of(step.placement.ranks[rank], MemoryClass::activations), held[rank] * 100)
            << schedule;
      }
    }
}

/// Stages of blocks whose tapes have `saved` numbers, and whose products that wait `put_off` beside them.
Outline stages_of(const std::string& schedule, int stages, int saved, int put_off) {
  Outline outline = equal_stages_for(schedule, stages, 4 * stages, {12000, 25200, 15600, 9600});
  for (auto& candidates : outline.blocks) {
    candidates[0].saved = saved / outline.chunks;
    candidates[0].put_off = put_off / outline.chunks;
  }
  return outline;
}

TapeSlab slab_of(const std::vector<Action>& list, const Outline& outline) {
  return place_tapes(list, [&](int chunk, bool) { return sizes_of_rooms(outline, chunk); });
}

TEST(Place, TapesInTwoRoomsTakeLittleMoreThanThoseOf1f1b) {
  // GPT-2's on GPUs and on CPUs.
  for (const auto& [saved, put_off] : {std::pair{1200, 400}, {1000, 600}})
    for (const auto& [schedule, stages, most] : {std::tuple{"zb-h1", 8, 1.1},
                                                 {"zb-h1", 16, 1.1},
                                                 {"zb-v", 8, 1.1},
                                                 {"zb-v", 16, 1.1},
                                                 {"dualpipe-v", 4, 1.2},
                                                 {"dualpipe-v", 8, 1.13},
                                                 {"dualpipe-v", 16, 1.13},
                                                 {"v-half", 8, 0.77},
                                                 {"v-half", 16, 0.66}}) {
      const Outline outline = stages_of(schedule, stages, saved, put_off);
      const PlannedStep step = make_program(outline, schedule);
      std::size_t largest = 0;
      for (const std::vector<Action>& list : step.program.ranks) {
        const TapeSlab slab = slab_of(list, outline);
        EXPECT_EQ(fault_of_slab(list, slab), "") << schedule << ' ' << stages;
        largest = std::max(largest, slab.bytes);
      }
      EXPECT_LE(static_cast<double>(largest), most * static_cast<double>(tapes_of_1f1b(outline)))
          << schedule << ' ' << stages << ' ' << put_off;
    }
}

/// Whether two rooms are in use at a time is asked of the list, room by room.
TEST(Place, RoomsThatShareBytesAtATimeAreFound) {
  for (const std::string schedule : {"1f1b", "zb-h1", "zb-v"}) {
    const Outline outline = stages_of(schedule, 4, 1200, 400);
    int found = 0;
    for (const std::vector<Action>& list : make_program(outline, schedule).program.ranks) {
      const TapeSlab sound = slab_of(list, outline);
      ASSERT_EQ(fault_of_slab(list, sound), "");
      TapeSlab wrong = sound;
      wrong.bytes -= 1;
      EXPECT_NE(fault_of_slab(list, wrong), "") << schedule;
      std::map<std::pair<int, int>, TapeRoom> open;
      for (const Action& action : list) {
        if (!is_pass(action)) continue;
        const std::pair whose{action.chunk, action.micro_batch};
        if (is_forward(action)) {
          for (const auto& [other, room] : open) {  // as if that one were free too early
            wrong = sound;
            wrong.rooms.at(whose).tape = room.tape;
            wrong.rooms.at(whose).tape_end = room.tape + 1;
            EXPECT_NE(fault_of_slab(list, wrong), "") << schedule << ' ' << action.micro_batch;
            ++found;
          }
          open[whose] = sound.rooms.at(whose);
        } else if (action.kind == ActionKind::backward_input) {
          wrong = sound;
          wrong.rooms.at(whose).waiting = sound.rooms.at(whose).tape;
          wrong.rooms.at(whose).waiting_end = sound.rooms.at(whose).tape + 1;
          EXPECT_NE(fault_of_slab(list, wrong), "") << schedule << ": products wait on what they read";
        } else if (makes_gradients(action) && action.first == outline.first_block[action.chunk]) {
          open.erase(whose);
        }
      }
    }
    EXPECT_GT(found, 20) << schedule;
  }
}

TEST(Place, RingsOfTwoAreEnoughFor1f1bAndGpipe) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"})
    for (int m : {2, 5, 16}) {
      const PlannedStep step = make_program(equal_stages(6, m), schedule);
      EXPECT_EQ(step.placement.ranks[0].buffers.size(), 4u)
          << schedule << ": activations leave, gradients arrive";
      EXPECT_EQ(step.placement.ranks[3].buffers.size(), 8u) << schedule;
    }
}

TEST(Place, BreadthFirstGetsTheDeeperRingThatItNeeds) {
  const PlannedStep step = make_program(equal_stages(4, 16, 2), "breadth-first");
  EXPECT_EQ(step.expected.step, 16 * 3000 + 3 * 1500);
  // Rank 3's first chunk makes all its outputs long before rank 0 is done with its own first chunk.
  std::size_t most = 0;
  for (const RankMemory& memory : step.placement.ranks) most = std::max(most, memory.buffers.size());
  EXPECT_GT(most, 16u);
  EXPECT_LE(most, 32u);
}

TEST(Place, BuffersNeverSlowAStepDown) {
  for (const std::string& schedule : all_schedules()) {
    Outline outline = with_everything(equal_stages_for(schedule, 5, 12, {}, 2));
    outline.blocks[3][0].forward *= 3;
    const PlannedStep two = make_program(outline, schedule);
    Program other = two.program;
    for (auto& list : other.ranks)
      for (Action& action : list)
        std::erase_if(action.after, [&](int earlier) {
          const ActionKind before = list[earlier].kind;
          return (action.kind == ActionKind::receive && before != ActionKind::receive) ||
                 (action.queue == Queue::compute && before == ActionKind::send);
        });
    EXPECT_LE(two.expected.step, simulate(other, durations_of(other, outline, {}), {}).step * 1.006)
        << schedule;
  }
}

TEST(Place, AVHandsItsMiddleOverWithoutMessages) {
  const Outline outline = in_v(equal_stages(3, 4, 2));
  const PlannedStep step = make_program(outline, "breadth-first");
  for (const Action& action : step.program.ranks[2]) {
    if (is_message(action)) {
      EXPECT_EQ(action.peer, 1);
    }
    if (action.kind == ActionKind::forward) {
      EXPECT_TRUE(action.from_buffer >= 0 && action.to_buffer >= 0) << to_string(action);
    }
  }
}

TEST(Place, GradientsOfSeveralShardsNeedTheCountersAccumulators) {
  Outline outline = equal_stages(1, 8);
  for (const auto& [shards, accumulators] : {std::pair{1, 1}, {2, 2}, {4, 3}, {8, 4}}) {
    outline.shards = shards;
    EXPECT_EQ(bytes_of(make_program(outline, "1f1b").placement.ranks[0], MemoryClass::gradients),
              40 * accumulators)
        << shards;
  }
}

TEST(Place, BuffersAreAsLargeAsTheLargestBoundary) {
  Outline outline = equal_stages(3, 4);
  outline.cuts[2] = {0, 64, 0, 128};
  const PlannedStep step = make_program(outline, "1f1b");
  EXPECT_EQ(bytes_of(step.placement.ranks[0], MemoryClass::boundary), 2 * 8 + 2 * 8);
  EXPECT_EQ(bytes_of(step.placement.ranks[1], MemoryClass::boundary), 4 * 8 + 2 * 64 + 2 * 128);
  EXPECT_EQ(bytes_of(step.placement.ranks[2], MemoryClass::boundary), 2 * 64 + 2 * 128);
}

}  // namespace
}  // namespace mindpipe
