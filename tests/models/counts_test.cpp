#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "make_backend.h"
#include "models/candidates.h"
#include "models/model.h"
#include "spaces.h"
#include "supernet/subnet.h"

namespace mindpipe {
namespace {

using ::testing::HasSubstr;

/// Models on paper: nothing is allocated.
struct OnPaperModels : ::testing::Test {
  Memory memory{Memory::Kind::counted};
  std::unique_ptr<Backend> backend = make_cpu_backend(memory, 1, "auto");

  std::deque<Communicator> groups;  ///< which models refer to

  std::unique_ptr<Model> make(const Config& config, int shards) {
    return make_model(config, {*backend, groups.emplace_back(*backend, shards), DType::bf16, false, 1});
  }
  static Config read(const std::string& name, const std::vector<std::string>& overrides = {}) {
    return read_config(std::string(MINDPIPE_SOURCE_DIR "/configs/") + name, overrides);
  }
  ~OnPaperModels() override { EXPECT_EQ(memory.allocated(), 0u) << "building a model takes no memory"; }
};

TEST_F(OnPaperModels, HaveAsManyParametersAsTheirPapersSay) {
  EXPECT_EQ(make(read("gpt2-124m.yaml"), 1)->parameters(), 124439808);
  EXPECT_EQ(make(read("gpt2-124m.yaml", {"model.tied=false"}), 1)->parameters(), 124439808 + 50257 * 768);
  EXPECT_EQ(make(read("gpt2-1.5b.yaml"), 1)->parameters(), 1557611200);
  EXPECT_EQ(make(read("llama-8b.yaml"), 8)->parameters(), 8030261248);
}

TEST_F(OnPaperModels, TakeSixOperationsAParameterAndTokenAndThoseOfCausalAttention) {
  EXPECT_EQ(make(read("gpt2-124m.yaml"), 1)->formula().operations, 6.0 * 124439808 + 6.0 * 12 * 768 * 1024);
  const auto narrow = make(read("gpt2-124m.yaml", {"model.head_width=32"}), 1);
  EXPECT_EQ(narrow->formula().operations, 6.0 * narrow->parameters() + 6.0 * 12 * 12 * 32 * 1024);
}

TEST_F(OnPaperModels, OfOtherKindsHaveAsManyToo) {
  EXPECT_EQ(make(read("bert-base.yaml"), 1)->parameters(), 109514298);
  EXPECT_EQ(make(read("bert-large.yaml"), 1)->parameters(), 335174458);
  EXPECT_EQ(make(read("wide-resnet-28-10.yaml"), 1)->parameters(), 36479194) << "running statistics are none";
  EXPECT_EQ(make(read("wide-resnet-16-4.yaml"), 1)->parameters(), 2748890);
  EXPECT_EQ(make(read("vit-base.yaml"), 1)->parameters(), 86567656);
  EXPECT_EQ(make(read("vit-base.yaml", {"model.classes=10"}), 1)->parameters(), 86567656 - 990 * 769);
  const std::string pre_norm = "model.order=pre_norm";
  const auto without_table = [&](const std::string& name, const std::vector<std::string>& overrides) {
    const Config config = read(name, overrides);
    const transformer::Settings& m = config.model.transformer;
    return make(config, 1)->parameters() - std::int64_t{m.vocabulary} * m.width;
  };
  EXPECT_EQ(without_table("transformer-base.yaml", {}), 44138496);
  EXPECT_EQ(without_table("transformer-base.yaml", {pre_norm}), 44140544);
  EXPECT_EQ(without_table("transformer-big.yaml", {}), 176357376);
  EXPECT_EQ(without_table("transformer-big.yaml", {pre_norm}), 176361472);
}

/// Parameters of a model's units of one cell, in order.
std::vector<std::int64_t> counts_of(const Model& model, const std::string& cell) {
  std::vector<std::int64_t> counts;
  for (const auto& unit : model.units())
    if (unit->name().starts_with(cell + ".")) counts.push_back(unit->parameters());
  return counts;
}
std::int64_t counts_of_all(const Model& model, const std::string& side) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts_of(model, side)) sum += count;
  return sum;
}

TEST_F(OnPaperModels, EvolvedTransformersHaveAsManyInEveryBlockOfTheirCells) {
  struct Row {
    std::int64_t width;
    std::vector<std::int64_t> encoder, decoder;
    std::int64_t encoder_cell, decoder_cell;
  };
  const std::vector<Row> rows{
      {128, {33280, 129408, 65792, 131968}, {131328, 79040, 65792, 65792, 132992}, 360448, 474944},
      {512,
       {526336, 1992192, 1049600, 2100736},
       {2098176, 1200896, 1049600, 1049600, 2104832},
       5668864,
       7503104},
      {1024,
       {2101248, 7916544, 4196352, 8395776},
       {8390656, 4761088, 4196352, 4196352, 8403968},
       22609920,
       29948416}};
  for (const Row& row : rows)
    for (int shards : {1, 4}) {
      const auto model =
          make(read("evolved-transformer-base.yaml", {fmt::format("model.width={}", row.width)}), shards);
      EXPECT_EQ(counts_of(*model, "encoder.2"), row.encoder) << row.width;
      EXPECT_EQ(counts_of(*model, "decoder.3"), row.decoder) << row.width;
      EXPECT_EQ(counts_of_all(*model, "encoder"), 3 * row.encoder_cell);
      EXPECT_EQ(counts_of_all(*model, "decoder"), 4 * row.decoder_cell);
    }
  const auto body = [&](const std::string& name, int shards) {
    const Config config = read("evolved-transformer-" + name + ".yaml");
    const evolved_transformer::Settings& m = config.model.evolved_transformer;
    return make(config, shards)->parameters() - std::int64_t{m.vocabulary} * m.width;
  };
  for (int shards : {1, 2, 4}) {
    EXPECT_EQ(body("tiny", shards), 2981632);
    EXPECT_EQ(body("base", shards), 47021056);
    EXPECT_EQ(body("deep", shards), 196764800);
    EXPECT_EQ(body("big", shards), 187627520);
  }
}

TEST_F(OnPaperModels, AnEvolvedTransformersMemoryReachesItsLastCrossAttention) {
  const auto model = make(read("evolved-transformer-dates.yaml"), 1);
  std::string blocks, carried;
  for (const Model::Block& block : model->blocks()) {
    blocks += block.name + " ";
    if (block.reads_encoder()) carried += block.name + " ";
  }
  EXPECT_EQ(
      blocks,
      "encoder.embedding encoder.0.glu encoder.0.convolution encoder.0.attention encoder.0.mlp bridge "
      "decoder.0.parallel decoder.0.convolution decoder.0.attention decoder.0.cross decoder.0.mlp head ");
  EXPECT_EQ(carried, "decoder.0.parallel decoder.0.convolution decoder.0.attention decoder.0.cross ");
}

/// The configuration of a network of a space at width 1024, whose blocks are all their first candidates.
Config at_full_width(const std::string& space) {
  Config config;
  choose(config, space, {});
  subnet::Settings& m = config.model.subnet;
  m.choice.assign(static_cast<std::size_t>(m.space.blocks()), 0);
  m.width = 1024;
  return resolve(config);
}

TEST_F(OnPaperModels, SpacesHaveAsManyParametersAsTheirPaperSays) {
  const Config c3 = at_full_width("nlp.c3"), c0 = at_full_width("nlp.c0");
  for (const int shards : {1, 2, 4}) {
    Communicator tensor(*backend, shards);
    const LayerContext context{*backend, tensor, DType::bf16, false, 1};
    const auto parameters_of = [&](const Config& config, int block) {
      const SpaceSettings& m = config.model.subnet;
      const Candidates candidates(m, context);
      std::int64_t sum = 0;
      for (int number = 0; number < static_cast<int>(m.space.candidates(block).size()); ++number) {
        if (!has_parameters(m.space.candidates(block)[number])) continue;
        Unit unit(candidate_name(block, number));
        candidates.make(block, number, &unit);
        sum += unit.parameters();
      }
      return sum;
    };
    EXPECT_EQ(parameters_of(c3, 0), 24249728) << "a block of the encoder";
    EXPECT_EQ(parameters_of(c3, 24), 28446080) << "a block of the decoder";
    EXPECT_EQ(parameters_of(c3, 29), 100712448) << "a block that attends to the encoder";
    std::int64_t all = 0, four_times = 0;
    for (int block = 0; block < 48; ++block) {
      all += parameters_of(c3, block);
      four_times += parameters_of(c0, block);
    }
    EXPECT_EQ(all, 1553764864);
    EXPECT_EQ(four_times, 6215059456);
  }
}

TEST_F(OnPaperModels, NetworksOfASpaceAreListsOfTheCandidatesThatWereChosen) {
  const auto blocks_and_readers = [&](const std::string& decoder, const std::vector<int>& choice) {
    Config config;
    choose(config, "{name: s, encoder: {blocks: 2, candidates: [glu, identity]}, decoder: " + decoder + "}",
           choice);
    const auto model = make(resolve(config), 2);
    std::string text;
    for (const Model::Block& block : model->blocks())
      text += fmt::format("{}{}{} ", block.name, block.units.empty() ? "(no unit)" : "",
                          block.reads_encoder() ? "<" : "");
    return text;
  };
  const std::string two = "{blocks: 3, candidates: [mlp-2, cross-2]}";
  EXPECT_EQ(
      blocks_and_readers(two, {1, 0, 0, 1, 0}),
      "encoder.embedding blocks.0.1(no unit) blocks.1.0 bridge blocks.2.0< blocks.3.1< blocks.4.0 head ");
  EXPECT_EQ(blocks_and_readers(two, {0, 0, 0, 0, 0}),
            "encoder.embedding blocks.0.0 blocks.1.0 bridge blocks.2.0< blocks.3.0 blocks.4.0 head ")
      << "a memory that nobody reads enters one block, which gives its gradient: zeros";
  Config config;
  choose_a_plain_one(config);
  config.model.subnet.tied = false;
  const auto model = make(resolve(config), 2);
  std::string units;
  for (const auto& unit : model->units()) units += fmt::format("{} {} ", unit->name(), unit->parameters());
  EXPECT_EQ(units,
            fmt::format("embedding {0} positions {1} blocks.0.0 {2} blocks.1.1 {3} head {4} ", 260 * 128,
                        256 * 128, 4 * 128 * 128 + 256, 8 * 128 * 128 + 512 + 128 + 256, 260 * 128 + 256));
}

TEST_F(OnPaperModels, HaveATableForEachUseOfTheirTokensOrOneForSome) {
  const std::int64_t table = 37000 * 512, one = make(read("transformer-base.yaml"), 1)->parameters();
  EXPECT_EQ(make(read("transformer-base.yaml", {"model.tables=two"}), 1)->parameters(), one + table);
  EXPECT_EQ(make(read("transformer-base.yaml", {"model.tables=three"}), 1)->parameters(), one + 2 * table);
}

TEST_F(OnPaperModels, HaveTheSameParametersForEveryNumberOfShards) {
  for (const char* name : {"gpt2-124m.yaml", "bert-base.yaml", "transformer-base.yaml", "vit-base.yaml",
                           "evolved-transformer-base.yaml", "wide-resnet-16-4.yaml"})
    for (const int shards : {2, 4})
      EXPECT_EQ(make(read(name), shards)->parameters(), make(read(name), 1)->parameters())
          << name << " in " << shards << " shards: padding does not count";
}

TEST_F(OnPaperModels, AreListsOfBlocksInOrderWithTheirUnits) {
  const auto model = make(read("gpt2-124m.yaml"), 1);
  ASSERT_EQ(model->blocks().size(), 2u + 2 * 12);
  EXPECT_EQ(model->blocks()[0].name, "embedding");
  EXPECT_EQ(model->blocks()[1].name, "layers.0.attention");
  EXPECT_EQ(model->blocks()[24].name, "layers.11.mlp");
  const Model::Block& head = model->blocks().back();
  EXPECT_EQ(head.name, "head");
  EXPECT_EQ(head.use, 1);
  EXPECT_EQ(head.units, (std::vector<int>{0, static_cast<int>(model->units().size()) - 1}))
      << "the table of the embedding and its own norm";
}

TEST_F(OnPaperModels, SendAMemoryFromTheBridgeToItsLastReaderOnly) {
  Config config;
  config.model.kind = ModelKind::transformer;
  config.model.transformer.layers = 2;
  config.data.source_sequence = 48;
  const auto model = make(resolve(config), 1);
  std::string carried;
  for (const Model::Block& block : model->blocks())
    if (block.reads_encoder()) carried += block.name + " ";
  EXPECT_EQ(carried,
            "decoder.0.attention decoder.0.cross decoder.0.mlp decoder.1.attention decoder.1.cross ");
  for (int block = 1; block < static_cast<int>(model->blocks().size()); ++block)
    EXPECT_EQ(model->before(block), block <= 5 ? (Shape{48, 128}) : (Shape{256, 128})) << block;
  EXPECT_EQ(model->blocks()[6].memory, (Shape{48, 128})) << "as long as the source, not the target";
}

TEST_F(OnPaperModels, RefuseToComputeAgainWhatIsNoBlockOrKeepsNothing) {
  const auto refusal = [&](int block) -> std::string {
    Config config;
    config.model.gpt.layers = 2;
    config.train.recompute = ChosenBlocks({block});
    try {
      make(resolve(config), 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const int block : {1, 2, 3, 4}) EXPECT_EQ(refusal(block), "");
  EXPECT_EQ(
      refusal(0),
      "train.recompute names block 0, which is embedding: it has nothing that a second forward could make "
      "again");
  EXPECT_EQ(refusal(6), "train.recompute names block 6, and the model's blocks are 0 to 5");
}

std::string names_of(const std::vector<Field>& fields) {
  std::string names;
  for (const Field& field : fields) names.append(field.name).append(" ");
  return names;
}

TEST_F(OnPaperModels, SayWhichFieldsTheirBlocksRead) {
  Config config;
  config.model.kind = ModelKind::transformer;
  config.model.transformer.layers = 1;
  for (WhichBlocks recompute : {WhichBlocks::none, WhichBlocks::block}) {
    config.train.recompute = recompute;
    const auto model = make(resolve(config), 1);
    const auto read = [&](int first, int last) { return names_of(model->fields_of({{first, last}})); };
    const int head = static_cast<int>(model->blocks().size()) - 1;
    EXPECT_EQ(names_of(model->fields()), "source source_lengths tokens targets ");
    EXPECT_EQ(read(0, head + 1), names_of(model->fields()));
    EXPECT_EQ(read(0, 1), "source ");
    EXPECT_EQ(read(1, 2), "source_lengths ") << "an encoder's attention";
    EXPECT_EQ(read(2, 3), "") << "an MLP";
    EXPECT_EQ(read(3, 4), "tokens ") << "the bridge";
    EXPECT_EQ(read(4, 5), "") << "a decoder pads on the right";
    EXPECT_EQ(read(5, 6), "source_lengths ") << "cross-attention";
    EXPECT_EQ(read(head, head + 1), "targets ");
    EXPECT_EQ(names_of(model->fields_of({{0, 1}, {head, head + 1}})), "source targets ");
  }
}

TEST_F(OnPaperModels, CountTheirCaches) {
  EXPECT_EQ(make(read("llama-8b.yaml"), 8)->cache_bytes(1), 32u * 8192 * 2 * 8 * 128 * 2);
  EXPECT_EQ(make(read("gpt2-124m.yaml"), 1)->cache_bytes(3), 3u * 12 * 1024 * 2 * 768 * 2);
}

TEST_F(OnPaperModels, RefuseHeadsThatTheShardsDoNotDivideAndNameTheNearestThatFit) {
  Config config;
  config.model.gpt.heads = 5;
  config.model.gpt.width = 160;
  config = resolve(config);
  try {
    make(config, 2);
    FAIL() << "five heads over two shards";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_STREQ(error.what(),
                 "model.heads is 5, which 2 logical tensor shards (reproducible.tensor) do not divide; the "
                 "nearest that fit are 4 and 6");
  }
  config.model.gpt.heads = 4;
  config.model.gpt.key_value_heads = 1;
  try {
    make(config, 2);
    FAIL() << "one head of keys and values over two shards";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "model.key_value_heads is 1, which 2 logical tensor shards (reproducible.tensor) do not "
                 "divide; the nearest that fit are 2");
  }
  config.model.gpt.key_value_heads = 4;
  config.model.gpt.mlp_width = 129;
  EXPECT_THROW(make(config, 2), Error);
}

}  // namespace
}  // namespace mindpipe
