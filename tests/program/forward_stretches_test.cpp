#include "program/lists/forward_stretches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "program/check/checker.h"
#include "program/sample_outline.h"

// Forwards alone, batch behind batch: what is written as the list grows can be run by all ranks together.
namespace mindpipe {
namespace {

Outline without_backwards(Outline outline) {
  outline.training = false;
  return outline;
}

/// All batches as one that has all their micro-batches, for the checker of steps.
struct OneBatch {
  OneBatch(Program of, const Outline& of_each, int batches) : program(std::move(of)), outline(of_each) {
    outline.micro_batches *= batches;
    outline.shards *= batches;
    for (auto& list : program.ranks)
      for (Action& action : list) {
        action.micro_batch += static_cast<int>(action.owner.number) * of_each.micro_batches;
        action.shard += static_cast<int>(action.owner.number) * of_each.shards;
        action.owner = {};
      }
  }
  std::vector<std::string> errors() const { return check(program, outline); }

  Program program;
  Outline outline;
};

/// The lists of all ranks, written a few batches at a time; each rank's cuts lie elsewhere.
Program cut_anywhere(const Outline& outline, const Network& network, int batches, unsigned seed) {
  Program program;
  for (int rank = 0; rank < outline.stages; ++rank) {
    std::mt19937 random(seed + static_cast<unsigned>(rank));
    ForwardStretches list(outline, network, forward_rings(outline, rank), rank);
    auto& all = program.ranks.emplace_back();
    for (int known = 0; known < batches || random() % 2 > 0;) {
      const int more = std::min<int>(batches - known, static_cast<int>(random() % 4));
      for (int i = 0; i < more; ++i) list.add({});
      known += more;
      const int begin = static_cast<int>(all.size());
      for (Action& action : list.write(known == batches).actions) {
        for (int& earlier : action.after) earlier += begin;
        all.push_back(std::move(action));
      }
    }
  }
  return program;
}

std::vector<Outline> all_shapes() {
  std::vector<Outline> outlines;
  for (const int stages : {1, 2, 3, 4, 5, 8})
    for (const int chunks : {1, 2, 3})
      for (const int micro_batches : {1, 2, 4}) {
        outlines.push_back(without_backwards(equal_stages(stages, micro_batches, chunks)));
        outlines.push_back(without_backwards(with_everything(equal_stages(stages, micro_batches, chunks))));
        if (chunks == 2 && stages > 1) outlines.push_back(in_v(outlines.back()));
      }
  return outlines;
}

std::string name_of(const Outline& outline, int batches) {
  return fmt::format("{} batches of {} micro-batches on {} stages of {} chunks{}", batches,
                     outline.micro_batches, outline.stages, outline.chunks,
                     outline.rank_of(outline.all_chunks() - 1) == 0 && outline.stages > 1 ? " in a V" : "");
}

TEST(ForwardStretches, OfAllRanksAreSoundTogether) {
  for (const Outline& outline : all_shapes())
    for (const int batches : {1, 2, 3, 7, 12}) {
      const OneBatch all(forward_program(outline, {}, batches), outline, batches);
      EXPECT_THAT(all.errors(), testing::IsEmpty()) << name_of(outline, batches);
    }
}

TEST(ForwardStretches, AreTheSameWhereverTheyAreCut) {
  for (const Outline& outline : all_shapes()) {
    const Program whole = forward_program(outline, {}, 13);
    for (unsigned seed = 1; seed <= 3; ++seed)
      EXPECT_EQ(cut_anywhere(outline, {}, 13, seed).ranks, whole.ranks) << name_of(outline, 13);
  }
}

TEST(ForwardStretches, EveryMissingWaitIsFound) {
  for (const int chunks : {1, 2}) {
    const Outline outline = without_backwards(with_everything(equal_stages(3, 2, chunks)));
    OneBatch all(forward_program(outline, {}, 5), outline, 5);
    for (auto& list : all.program.ranks)
      for (Action& action : list) {
        const std::vector<int> waits = action.after;
        for (const int earlier : waits) {
          std::erase(action.after, earlier);
          EXPECT_FALSE(all.errors().empty()) << to_string(action) << " without " << earlier;
          action.after = waits;
        }
      }
  }
}

TEST(ForwardStretches, LastAsLongAsTheirCandidates) {
  Outline outline = without_backwards(equal_stages(2, 2, 1, {}, 2));
  for (int block = 0; block < 4; ++block) {
    BlockCost other = outline.cost(block);
    other.forward = 100 + block;
    outline.blocks[block].push_back(other);
    outline.units_used[block].emplace_back();
  }
  Network network;
  network.message.latency = 7;
  ForwardStretches first(outline, network, forward_rings(outline, 0), 0),
      second(outline, network, forward_rings(outline, 1), 1);
  for (ForwardStretches* list : {&first, &second}) {
    list->add({0, 1, 1, 0});
    list->add({1, 1, 0, 0});
  }
  const auto times_of = [](const ListStretch& list) {
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < list.actions.size(); ++i)
      if (is_pass(list.actions[i])) {
        times.push_back(list.times[i]);
      } else {
        EXPECT_EQ(list.times[i], 7);
      }
    return times;
  };
  EXPECT_EQ(times_of(first.write(true)), (std::vector<std::int64_t>{601, 601, 201, 201}));
  EXPECT_EQ(times_of(second.write(true)), (std::vector<std::int64_t>{602, 602, 1000, 1000}));
}

/// From the first start to the last end.
std::int64_t time_of(const Outline& outline, const Network& network, int batches) {
  const Program program = forward_program(outline, network, batches);
  const Timeline line = simulate(program, durations_of(program, outline, network), network);
  EXPECT_TRUE(line.finished);
  return line.step;
}

TEST(ForwardStretches, DrainNothingBetweenBatches) {
  for (const int stages : {1, 2, 3, 4, 8})
    for (const int micro_batches : {1, 4}) {
      const Outline outline = without_backwards(equal_stages(stages, micro_batches));
      const std::int64_t passes = 48 * micro_batches;
      EXPECT_EQ(time_of(outline, {}, 48), 1000 * (passes + stages - 1)) << name_of(outline, 48);
      Network network;
      network.message.latency = 10;
      EXPECT_EQ(time_of(outline, network, 48), 1000 * (passes + stages - 1) + 10 * (stages - 1))
          << "messages travel while others compute";
    }
  for (const int chunks : {2, 4}) {
    const Outline outline = without_backwards(equal_stages(4, 2, chunks));
    EXPECT_EQ(time_of(outline, {}, 48), 1000 * 96 + 3 * 1000 / chunks) << name_of(outline, 48);
  }
}

/// How long scores take that are asked for once the one `in_flight` before has been heard of, which is a
/// moment after its last forward: equal stages, free messages.
std::int64_t time_with(const Outline& outline, std::int64_t batches, std::int64_t in_flight, int scores) {
  constexpr std::int64_t forward = 1000, moment = 1;
  const std::int64_t forwards = batches * outline.micro_batches;
  std::vector<std::int64_t> free(static_cast<std::size_t>(outline.stages), 0), heard;
  for (int score = 0; score < scores; ++score) {
    std::int64_t end = 0;
    const std::int64_t known =
        score < in_flight ? 0 : heard[static_cast<std::size_t>(score - in_flight)] + moment;
    for (std::int64_t k = 0; k < forwards; ++k) {
      end = known;
      for (std::int64_t& stage : free) stage = end = std::max(stage, end) + forward;
    }
    heard.push_back(end);
  }
  return heard.back();
}

TEST(ForwardStretches, FillThePipelineWithSoManyInFlightAndNoFewer) {
  constexpr int scores = 40;
  for (const int stages : {2, 3, 4, 8, 16})
    for (const int micro_batches : {1, 3})
      for (const int batches : {1, 2, 5, 20}) {
        const Outline outline = without_backwards(equal_stages(stages, micro_batches));
        const std::int64_t full = 1000 * (scores * batches * micro_batches + stages - 1),
                           least = scores_in_flight(outline, batches);
        EXPECT_EQ(time_with(outline, batches, least, scores), full) << name_of(outline, batches);
        EXPECT_GT(time_with(outline, batches, least - 1, scores), full) << name_of(outline, batches);
      }
  EXPECT_EQ(scores_in_flight(equal_stages(1, 4), 1), 1) << "nobody waits for the end of a pipeline";
}

}  // namespace
}  // namespace mindpipe
