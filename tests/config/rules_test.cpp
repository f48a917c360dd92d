#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "core/check.h"

namespace mindpipe {
namespace {

std::string complaint(const Config& config) {
  try {
    resolve(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    return error.what();
  }
  return "accepted";
}

/// The complaint about a configuration that is sound but for one change.
template <class Change>
std::string complaint_after(Change change) {
  Config config;
  config.run.dir = "d";
  config.data.train = {{"corpus", 1}};
  EXPECT_EQ(complaint(config), "accepted");
  change(config);
  return complaint(config);
}

TEST(Rules, HeadsDivideTheWidth) {
  EXPECT_EQ(complaint_after([](Config& c) { c.model.gpt.heads = 5; }),
            "configuration: model.heads is 5 and model.width 128 (heads divide the width; the nearest width "
            "is 130)");
  EXPECT_EQ(complaint_after([](Config& c) { c.model.gpt.key_value_heads = 3; }),
            "configuration: model.key_value_heads is 3 and model.heads 4 (heads share keys and values in "
            "equal groups)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.model.gpt.width = c.model.gpt.heads = 4;
              c.model.gpt.positions = Positions::rotary;
            }),
            "configuration: model.positions is rotary and a head is 1 wide (rotation works on pairs; make "
            "model.width / model.heads even)");
}

TEST(Rules, ARunGoesBackToCheckpointsThatAreMadeOnTheWay) {
  EXPECT_EQ(
      complaint_after([](Config& c) { c.guard.rollbacks = 1; }),
      "configuration: guard.rollbacks is 1, but checkpoint.every and checkpoint.every_time are 0 (a run "
      "goes back to a checkpoint: set one of them, or guard.rollbacks to 0)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.guard.rollbacks = 1;
              c.checkpoint.every_time = 60;
            }),
            "accepted");
  // A resolved configuration leaves open what its checkpoints decide, so that these may change.
  Config config;
  config.run.dir = "d";
  config.data.train = {{"corpus", 1}};
  config.checkpoint.every_time = 60;
  config = resolve(config);
  config.checkpoint.every_time = 0;
  EXPECT_EQ(complaint(config), "accepted");
}

TEST(Rules, EveryKindOfModelHasItsOwn) {
  const auto transformer = [](auto change) {
    return complaint_after([&](Config& c) {
      c.model.kind = ModelKind::transformer;
      change(c);
    });
  };
  EXPECT_EQ(transformer([](Config& c) { c.model.transformer.heads = 3; }),
            "configuration: model.heads is 3 and model.width 128 (heads divide the width; the nearest width "
            "is 129)");
  EXPECT_EQ(transformer([](Config& c) { c.data.source_sequence = 257; }),
            "configuration: data.source_sequence is 257 and model.context 256 (a sample fits the context)");
  EXPECT_EQ(
      transformer([](Config& c) {
        c.reproducible.tensor = 2;
        c.data.source_sequence = 31;
      }),
      "configuration: reproducible.tensor is 2 and data.source_sequence 31 (every logical shard gets an "
      "equal part; the nearest that divides all that is cut is 1)");
  EXPECT_EQ(transformer([](Config& c) { c.model.gpt.heads = 3; }), "accepted") << "another kind's";
  EXPECT_EQ(transformer([](Config& c) {
              c.model.transformer.positions = Places::learned;
              c.data.target_sequence = 300;
            }),
            "configuration: data.target_sequence is 300 and model.context 256 (a sample fits the context)")
      << "beyond the learned positions";
}

TEST(Rules, AnEvolvedTransformersHeadsAndHalvesDivide) {
  const auto evolved = [](auto change) {
    return complaint_after([&](Config& c) {
      c.model.kind = ModelKind::evolved_transformer;
      change(c.model.evolved_transformer, c);
    });
  };
  EXPECT_EQ(evolved([](auto&, Config&) {}), "accepted");
  EXPECT_EQ(evolved([](auto& m, Config&) { m.heads = 3; }),
            "configuration: model.heads is 3 and model.width 128 (heads divide the width; the nearest width "
            "is 129)");
  EXPECT_EQ(evolved([](auto& m, Config&) { m.width = 100; }),
            "configuration: model.heads is 4 and model.width 100 (a cell of the decoder begins with 8 heads, "
            "which divide the width; the nearest width is 104)");
  EXPECT_EQ(evolved([](auto& m, Config&) {
              m.width = 25;
              m.heads = 25;
            }),
            "configuration: model.width is 25 (sines and cosines, and the convolutions of a cell, take half "
            "of it)");
  EXPECT_EQ(evolved([](auto& m, Config& c) {
              m.width = m.context = 48;
              m.heads = 12;
              c.reproducible.tensor = 12;
            }),
            "configuration: reproducible.tensor is 12 and the heads that begin a cell of the decoder (twice "
            "model.heads, at most 16) 16 (every logical shard gets an equal part; the nearest that divides "
            "all that is cut is 4)");
}

TEST(Rules, MaskedTokensAndPicturesFitTheirModel) {
  const auto bert = [](auto change) {
    return complaint_after([&](Config& c) {
      c.model.kind = ModelKind::bert;
      change(c);
    });
  };
  EXPECT_EQ(bert([](Config&) {}), "accepted");
  EXPECT_EQ(bert([](Config& c) { c.data.sequence = 257; }),
            "configuration: data.sequence is 257 and model.context 256 (a sample fits the context)");
  EXPECT_EQ(bert([](Config& c) { c.model.bert.vocabulary = 259; }),
            "configuration: data.special.mask is 259 and model.vocabulary 259 (the mask is a token of the "
            "vocabulary)");
  EXPECT_EQ(bert([](Config& c) { c.data.special.padding = 260; }),
            "configuration: data.special.padding is 260 and model.vocabulary 260 (padding is a token of the "
            "vocabulary)");
  EXPECT_EQ(bert([](Config& c) { c.data.masked = 257; }),
            "configuration: data.masked is 257 and data.sequence 256 (they are tokens of the sample)");
  const auto vit = [](auto change) {
    return complaint_after([&](Config& c) {
      c.model.kind = ModelKind::vit;
      change(c.model.vit);
    });
  };
  EXPECT_EQ(vit([](vit::Settings& m) {
              m.layers = 1;
              m.width = 32;
            }),
            "accepted");
  EXPECT_EQ(vit([](vit::Settings& m) { m.patch = 48; }),
            "configuration: model.picture_height is 224 and model.patch 48 (patches tile a picture)");
  EXPECT_EQ(vit([](vit::Settings& m) {
              m.deviation = {1, 1};
            }),
            "configuration: model.deviation has 2 numbers and model.channels is 3 (one for each channel, or "
            "one for all)");
}

TEST(Rules, PicturesAndShardsFitAWideResnet) {
  const auto wide = [](auto change) {
    return complaint_after([&](Config& c) {
      c.model.kind = ModelKind::wide_resnet;
      change(c, c.model.wide_resnet);
    });
  };
  EXPECT_EQ(wide([](Config&, wide_resnet::Settings&) {}), "accepted");
  EXPECT_EQ(wide([](Config&, wide_resnet::Settings& m) { m.depth = 20; }),
            "configuration: model.depth is 20, but must be 6n + 4 (the nearest is 22)");
  EXPECT_EQ(wide([](Config&, wide_resnet::Settings& m) { m.picture_width = 30; }),
            "configuration: model.picture_width is 30, which 4 does not divide (two groups halve it; the "
            "nearest is 32)");
  EXPECT_EQ(wide([](Config& c, wide_resnet::Settings& m) {
              m.picture_height = m.picture_width = 4;
              c.train.micro_batch = 1;
            }),
            "configuration: train.micro_batch is 1 and pictures end as one pixel (batch norm needs more than "
            "one value of each channel)");
  EXPECT_EQ(wide([](Config& c, wide_resnet::Settings&) { c.reproducible.tensor = 3; }),
            "configuration: reproducible.tensor is 3 and 16 x model.width 64 (every logical shard gets an "
            "equal part; the nearest that divides all that is cut is 2 or 4)");
}

TEST(Rules, OptimizerStateAndGradientsMayBeShardedOverDataAlsoWhereThereIsOneReplica) {
  for (int zero : {0, 1, 2})
    EXPECT_EQ(complaint_after([&](Config& c) { c.train.zero = zero; }), "accepted") << zero;
}

TEST(Rules, TheBatchIsMicroBatchesOfEveryLogicalShard) {
  EXPECT_EQ(complaint_after([](Config& c) { c.reproducible.data = 3; }),
            "configuration: train.batch is 32, but must be a multiple of train.micro_batch x "
            "reproducible.data = 4 x 3 (the nearest is 36)");
  EXPECT_EQ(complaint_after([](Config& c) { c.train.micro_batch = 5; }),
            "configuration: train.batch is 32, but must be a multiple of train.micro_batch = 5 (the nearest "
            "is 30)");
  EXPECT_EQ(
      complaint_after([](Config& c) { c.train.micro_batch = 64; }),
      "configuration: train.micro_batch is 64 and train.batch 32 (a micro-batch is a part of the batch)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.train.batch = 30;
              c.grid.data = 0;
              c.train.micro_batch = 5;
            }),
            "accepted");
}

TEST(Rules, TheSequenceFitsTheContext) {
  EXPECT_EQ(complaint_after([](Config& c) { c.data.sequence = 257; }),
            "configuration: data.sequence is 257 and model.context 256 (a sample fits the context)");
}

TEST(Rules, TheRateFitsTheRun) {
  EXPECT_EQ(complaint_after([](Config& c) { c.optimizer.rate.floor = 1; }),
            "configuration: optimizer.rate.floor is 1 and optimizer.rate.peak 3e-04 (the floor is not above "
            "the peak)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.optimizer.rate.kind = RateKind::wsd;
              c.optimizer.rate.warmup = 95;
            }),
            "configuration: optimizer.rate.decay is 10, warm-up 95 and train.steps 100 (both parts lie "
            "within the run)");
  EXPECT_EQ(complaint_after([](Config& c) { c.train.steps = 0; }), "accepted");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.optimizer.rate.warmup = 50;
              c.optimizer.rate.decay = 40;
            }),
            "configuration: optimizer.rate.decay is 40 and optimizer.rate.warmup 50 (the floor is reached "
            "after the warm-up)");
}

TEST(Rules, AWarmUpMayBeLongerThanTheRun) {
  for (std::size_t i = 0; i < rows_of(RateKind{}).size(); ++i)
    EXPECT_EQ(complaint_after([&](Config& c) {
                c.optimizer.rate.kind = static_cast<RateKind>(i);
                c.optimizer.rate.warmup = 101;
              }),
              "accepted")
        << rows_of(RateKind{})[i].name;
}

TEST(Rules, AnyDegreesMayBeAuto) {
  EXPECT_EQ(complaint_after([](Config& c) { c.grid.data = 0; }), "accepted");
  EXPECT_EQ(complaint_after([](Config& c) { c.grid.data = c.grid.pipeline = c.grid.tensor = 0; }),
            "accepted");
}

TEST(Rules, DegreesDivideTheLogicalShards) {
  const auto tensor = [](int degree, int shards) {
    return complaint_after([&](Config& c) {
      c.grid.tensor = degree;
      c.reproducible.tensor = shards;
      c.model.gpt.width = 192;
      c.model.gpt.heads = 12;
      c.data.sequence = 192;
    });
  };
  for (auto [degree, shards] :
       {std::pair{1, 4}, {2, 4}, {4, 4}, {1, 3}, {3, 3}, {2, 6}, {3, 6}, {6, 6}, {4, 12}})
    EXPECT_EQ(tensor(degree, shards), "accepted") << degree << " of " << shards;
  for (auto [degree, shards] : {std::pair{4, 2}, {3, 4}, {4, 6}, {5, 12}})
    EXPECT_THAT(tensor(degree, shards), testing::HasSubstr("grid.tensor is")) << degree << " of " << shards;
  EXPECT_EQ(tensor(4, 6),
            "configuration: grid.tensor is 4 and reproducible.tensor 6 (ranks share the logical shards "
            "equally; the nearest that divides them is 3 or 6)");
}

TEST(Rules, LogicalShardsGetEqualParts) {
  EXPECT_EQ(complaint_after([](Config& c) { c.reproducible.tensor = 8; }),
            "configuration: reproducible.tensor is 8 and model.heads 4 (every logical shard gets an equal "
            "part; the nearest that divides all that is cut is 4)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.reproducible.tensor = 4;
              c.data.sequence = 254;
            }),
            "configuration: reproducible.tensor is 4 and data.sequence 254 (every logical shard gets an "
            "equal part; the nearest that divides all that is cut is 2)");
}

TEST(Rules, AHeadIsDrawnAnewBesideWeightsAlone) {
  EXPECT_EQ(
      complaint_after([](Config& c) { c.run.new_head = true; }),
      "configuration: run.new_head is true and run.weights names no weights whose head it could leave out "
      "(name them; without them the whole model is drawn)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.run.new_head = true;
              c.run.weights = "bert";
            }),
            "accepted");
}

TEST(Rules, CutsMatchTheStages) {
  EXPECT_EQ(complaint_after([](Config& c) { c.schedule.chunks = 2; }),
            "configuration: schedule.chunks is 2 and schedule.kind 1f1b (only interleaved, breadth-first and "
            "elastic cut stages into chunks)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.grid.pipeline = 3;
              c.schedule.cuts = {2, 2};
            }),
            "configuration: schedule.cuts is [2, 2] (each cut lies behind the one before)");
  EXPECT_EQ(complaint_after([](Config& c) {
              c.grid.pipeline = 2;
              c.schedule.cuts = {1, 2};
            }),
            "configuration: schedule.cuts names 2 cuts, but 2 stages of 1 chunks have 1");
}

TEST(Rules, AVHasTwoChunksOnEachOfSeveralStages) {
  const auto in_v = [](int chunks, int stages) {
    return complaint_after([=](Config& c) {
      c.schedule.kind = ScheduleKind::zero_bubble_v;
      c.schedule.chunks = chunks;
      c.grid.pipeline = stages;
    });
  };
  EXPECT_EQ(in_v(1, 2), "accepted") << "two where nothing is said";
  EXPECT_EQ(in_v(2, 2), "accepted");
  EXPECT_EQ(in_v(3, 2),
            "configuration: schedule.chunks is 3 and schedule.kind zb-v (only interleaved, breadth-first and "
            "elastic cut stages into chunks; a V has two)");
  EXPECT_EQ(
      in_v(2, 1),
      "configuration: schedule.kind is zb-v and grid.pipeline 1 (a V goes down the stages and up again: "
      "take two or more, or another schedule)");
}

TEST(Rules, CutsThatARunComesToMatchTheStagesAndFollowEachOther) {
  const auto complaint_of = [](const std::vector<CutAt>& at, int stages = 2) {
    return complaint_after([&](Config& c) {
      c.grid.pipeline = stages;
      c.repartition.at = at;
    });
  };
  EXPECT_EQ(complaint_of({{5, {3}}, {6, {4}}}), "accepted");
  EXPECT_EQ(
      complaint_of({{5, {3}}, {5, {4}}}),
      "configuration: repartition.at names step 5 behind step 5 (each move comes after the one before)");
  EXPECT_EQ(complaint_of({{5, {3, 4}}}),
            "configuration: repartition.at names 2 cuts in step 5, and 2 stages have 1");
  EXPECT_EQ(complaint_of({{5, {4, 4}}}, 3),
            "configuration: repartition.at has the cuts [4, 4] in step 5 (each cut lies behind the one "
            "before)");
  EXPECT_EQ(complaint_of({{5, {4}}}, 0), "accepted") << "degrees that are not known yet";
}

TEST(Rules, BlocksMoveByHandOrByReports) {
  const auto complaint_of = [](int every, const std::vector<CutAt>& at) {
    return complaint_after([&](Config& c) {
      c.grid.pipeline = 2;
      c.repartition.every = every;
      c.repartition.at = at;
    });
  };
  EXPECT_EQ(complaint_of(50, {}), "accepted");
  EXPECT_EQ(complaint_of(50, {{5, {3}}}),
            "configuration: repartition.every is 50, and repartition.at names moves by hand (leave one of "
            "them out)");
}

TEST(Rules, OnlyElasticSchedulesHaveGroups) {
  EXPECT_EQ(complaint_after([](Config& c) {
              c.schedule.groups.backward = {4, 8};
            }),
            "configuration: schedule.groups.backward is given and schedule.kind is 1f1b (only elastic has "
            "groups)");
  EXPECT_THAT(complaint_after([](Config& c) {
                c.schedule.kind = ScheduleKind::interleaved;
                c.schedule.groups = {{4}, {4}};
              }),
              testing::HasSubstr("schedule.groups.forward is given and schedule.kind is interleaved"));
}

TEST(Rules, OnlySchedulesThatPutGradientsOffHaveMemory) {
  EXPECT_EQ(
      complaint_after([](Config& c) { c.schedule.memory = 1.1; }),
      "configuration: schedule.memory is 1.1 and schedule.kind 1f1b (only zb-h1, zb-v, v-half, dualpipe-v, "
      "searched put weight gradients off)");
}

TEST(Rules, WhatIsAskedForIsNamed) {
  EXPECT_EQ(complaint_after([](Config& c) { c.train.evaluate_every = 5; }),
            "configuration: train.evaluate_every is 5, but data.validation names nothing to evaluate on");
  EXPECT_EQ(complaint_after([](Config& c) { c.device.kind = DeviceKind::emulated; }),
            "configuration: device.kind is emulated, but device.description names no device to imitate");
  EXPECT_EQ(complaint_after([](Config& c) { c.device.kernels = "products.txt"; }),
            "configuration: device.kernels names algorithms for a GPU, but device.kind is not cuda");
  EXPECT_THAT(complaint_after([](Config& c) { c.device.reserved_multiprocessors = 16; }),
              testing::HasSubstr("16, but device.kind is cpu"));
  DeviceConfig mpi{.kind = DeviceKind::cuda, .transport = TransportKind::mpi, .reserved_multiprocessors = 4};
  EXPECT_THAT(complaint_after([&](Config& c) { c.device = mpi; }),
              testing::HasSubstr("4, but device.transport is"));
  EXPECT_EQ(complaint_after([](Config& c) { c.device.transport = TransportKind::nccl; }),
            "configuration: device.transport is nccl, which carries messages between GPUs, but device.kind "
            "is not cuda");
}

}  // namespace
}  // namespace mindpipe
