// thorough ranks: 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include "runtime/ranks.h"
#include "runtime/resident.h"

// Predicted memory against that of runs on several ranks: every rank compares its own.
namespace mindpipe {
namespace {

struct MemoryOfRanks : ::testing::Test {
  const World world = all_ranks();

  /// The layouts of this many ranks, each with something of its own.
  std::vector<Config> layouts(Config base) const {
    std::vector<Config> all;
    const auto add = [&](const GridConfig& grid, const auto& set) {
      Config c = base;
      c.grid = grid;
      set(c);
      all.push_back(resolve(c));
    };
    if (world.size == 2) {
      add({1, 1, 1, 2}, [](Config&) {});
      add({1, 1, 1, 2}, [](Config& c) {
        c.train.sequence_parallel = true;
        c.train.precision = Precision::bf16;
      });
      add({1, 1, 2, 1}, [](Config& c) { c.train.zero = 1; });
      add({1, 1, 2, 1}, [](Config& c) {
        c.train.zero = 2;
        c.model.gpt.tied = false;
      });
      add({1, 1, 2, 1}, [](Config& c) {
        c.reproducible = {2, 4};
        c.train.recompute = WhichBlocks::block;
        c.train.batch = 16;
      });
      add({1, 2, 1, 1}, [](Config&) {});
      add({1, 2, 1, 1}, [](Config& c) {
        c.schedule.kind = ScheduleKind::interleaved;
        c.schedule.chunks = 2;
      });
    } else {
      add({1, 2, 1, 2}, [](Config& c) {
        c.train.sequence_parallel = true;
        c.schedule.kind = ScheduleKind::interleaved;
        c.schedule.chunks = 2;
      });
      add({1, 1, 2, 2}, [](Config& c) {
        c.train.zero = 1;
        c.train.sequence_parallel = true;
        c.train.precision = Precision::bf16;
        c.model.gpt.positions = Positions::rotary;
      });
      add({1, 2, 2, 1}, [](Config& c) {
        c.train.zero = 2;
        c.schedule.kind = ScheduleKind::breadth_first;
        c.schedule.chunks = 2;
      });
      add({1, 4, 1, 1}, [](Config& c) { c.train.recompute = WhichBlocks::block; });
      add({1, 2, 1, 2}, [](Config& c) {
        become_transformer(c);
        c.data.source_sequence = 2 * text_model(c).context / 4;
        c.schedule.kind = ScheduleKind::zero_bubble;
      });
      add({1, 1, 1, 4}, [](Config& c) {
        c.train.sequence_parallel = true;
        text_model(c).attention_dropout = 0;
      });
    }
    return all;
  }

  /// Layouts of models that are no gpt.
  std::vector<Config> other_kinds() const {
    std::vector<Config> all;
    const auto add = [&](Config c, const GridConfig& grid, const auto& set) {
      c.grid = grid;
      set(c);
      all.push_back(resolve(c));
    };
    const auto cut = [](Config& c) {
      c.train.sequence_parallel = true;
      c.train.precision = Precision::bf16;
    };
    const auto put_off = [](Config& c) { c.schedule.kind = ScheduleKind::zero_bubble; };
    const auto folded = [](Config& c) {
      c.train.zero = 2;
      c.schedule.kind = ScheduleKind::interleaved;
      c.schedule.chunks = 2;
    };
    const auto recomputed = [](Config& c) { c.train.recompute = WhichBlocks::block; };
    if (world.size == 2) {
      add(bert_run(), {1, 1, 1, 2}, cut);
      add(vit_run(), {1, 1, 1, 2}, cut);
      add(post_norm_run(), {1, 2, 1, 1}, put_off);
      add(vit_run(), {1, 2, 1, 1}, recomputed);
    } else {
      add(bert_run(), {1, 2, 2, 1}, folded);
      add(vit_run(), {1, 1, 1, 4}, cut);
      add(post_norm_run(), {1, 2, 1, 2}, cut);
      add(post_norm_run(), {1, 4, 1, 1}, recomputed);
    }
    return all;
  }

  /// Ranks whose shards are no whole subtree of a sum; of five, the ranks have two roots and three.
  std::vector<Config> without_whole_subtrees(const Config& base) const {
    std::vector<Config> all;
    const auto over_data = [&](const GridConfig& grid, int shards, int zero) {
      Config c = base;
      c.grid = grid;
      c.reproducible.data = shards;
      c.train.zero = zero;
      c.train.batch = 2 * shards;
      if (grid.pipeline > 1) c.schedule.kind = ScheduleKind::zero_bubble;
      all.push_back(resolve(c));
    };
    if (world.size == 4) {
      over_data({1, 1, 4, 1}, 12, 1);
      over_data({1, 2, 2, 1}, 6, 2);
      return all;
    }
    for (int zero : {0, 2})
      for (int shards : {6, 10}) over_data({1, 1, 2, 1}, shards, zero);
    Config c = base;
    c.grid.tensor = 2;
    c.reproducible.tensor = text_model(c).heads = 6;
    text_model(c).width = 192;
    text_model(c).mlp_width = 384;
    text_model(c).context = 96;
    c.train.sequence_parallel = true;
    all.push_back(resolve(c));
    return all;
  }

  static std::string describe(const Config& c) {
    return fmt::format("{} pipeline {} data {} tensor {} {} zero {}{} recompute {} {}", c.model.kind,
                       c.grid.pipeline, c.grid.data, c.grid.tensor, c.schedule.kind, c.train.zero,
                       c.train.sequence_parallel ? " sequence parallel" : "", c.train.recompute.text(),
                       c.train.precision);
  }
};

/// Arenas close with what was predicted, so a run that ends asked for no more. Plans without whole subtrees
/// predict the most of any rank, which may be more than this one used.
TEST_F(MemoryOfRanks, ARunThatIsGivenExactlyThePredictionFinishesAndUsesIt) {
  std::vector<Config> all = layouts(small_run()), more = other_kinds();
  all.insert(all.end(), more.begin(), more.end());
  const std::size_t with_subtrees = all.size();
  more = without_whole_subtrees(small_run());
  all.insert(all.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    Config config = all[i];
    config.train.noise_every = static_cast<int>(i % 2);
    const RunPlan plan = make_run_plan(config);
    for (int stage = 0; stage < config.grid.pipeline; ++stage)
      config.memory.device_limit = std::max(config.memory.device_limit, total_of(plan.most_memory(stage)));
    Worker worker(config, world, plan);
    worker.waiting().set_crowded(true);
    const BytesByClass predicted = plan.memory_of(worker.layout().coord);
    EXPECT_EQ(static_cast<std::int64_t>(worker.memory().allocated()), total_of(predicted))
        << describe(config);
    train_a_little(worker);
    if (i < with_subtrees) {
      EXPECT_EQ(complaint(predicted, used_by(worker.memory())), "")
          << describe(config) << " on rank " << world.rank;
    }
  }
}

TEST_F(MemoryOfRanks, EveryRankRefusesWhatDoesNotFitOnOneAndThePredictionWasRight) {
  Config config = small_run();
  config.grid.pipeline = world.size;
  config.schedule.cuts = world.size == 2 ? std::vector<int>{2} : std::vector<int>{2, 4, 6};
  config = resolve(config);
  const RunPlan plan = make_run_plan(config);
  std::int64_t largest = 0;
  for (int stage = 0; stage < world.size; ++stage)
    largest = std::max(largest, total_of(plan.most_memory(stage)));
  Config limited = config;
  limited.memory.device_limit = largest - 1;
  EXPECT_LT(total_of(plan.most_memory(world.size - 1)) * 4, largest * 5) << "no other stage is smaller";
  try {
    Worker worker(limited, world, plan);
    ADD_FAILURE() << "rank " << world.rank << " went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("workspace"));
  }
  Worker worker(config, world, with_more_memory(plan, 1.3));
  worker.waiting().set_crowded(true);
  train_a_little(worker);
  EXPECT_EQ(complaint(plan.memory_of(worker.layout().coord), used_by(worker.memory())), "");
}

TEST_F(MemoryOfRanks, APredictionWithoutTheRoomForExchangesIsNoticed) {
  Config config = small_run();
  config.grid.tensor = world.size;
  config.train.sequence_parallel = true;
  config.train.micro_batch = 8;
  config = resolve(config);
  const RunPlan plan = make_run_plan(config);
  RunPlan wrong = plan;
  wrong.memory[0][0][static_cast<int>(MemoryClass::workspace)] -=
      static_cast<std::int64_t>(aligned(plan.footprints[0].passes.exchange));
  wrong.footprints[0].passes.exchange = 0;
  {
    Worker worker(config, world, with_more_memory(plan, 1.3));
    worker.waiting().set_crowded(true);
    train_a_little(worker);
    EXPECT_THAT(complaint(wrong.memory[0][0], used_by(worker.memory())), testing::HasSubstr("workspace"));
  }
  Worker worker(config, world, wrong);
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  EXPECT_THROW(worker.step(corpus, 0, 0, 1e-3), Error) << "a step took memory that was not planned";
}

TEST_F(MemoryOfRanks, EveryProcessGrowsByWhatWasPredicted) {
  const std::vector<Config> wide = layouts(wide_run()), wordy = layouts(wordy_run());
  std::vector<Config> all;
  for (int i : world.size == 2 ? std::vector<int>{1, 2, 6} : std::vector<int>{0, 1, 3})
    all.push_back(wide[i]);
  if (world.size == 2) all.insert(all.end(), {wordy[0], wordy[2]});
  for (const Config& config : all)
    EXPECT_EQ(growth_complaint(config, world, make_run_plan(config)), "")
        << describe(config) << " " << text_model(config).vocabulary << " words, on rank " << world.rank;
}

}  // namespace
}  // namespace mindpipe
