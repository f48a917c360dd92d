#include "models/cells.h"

#include <fstream>

#include "models/small.h"

// Networks of cells: gradients of every combiner, width and norm, and the Evolved Transformer's own bits.
namespace mindpipe::testing {
namespace {

std::string file_of(const std::string& name) {
  std::ifstream file(std::string(MINDPIPE_SOURCE_DIR "/configs/spaces/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One network of a space's text, whose blocks have one candidate each, or those of a choice.
Config of_cells(const std::string& space, const std::vector<int>& choice = {}) {
  Config config = of_space(space, choice);
  if (config.model.subnet.space.has_encoder()) {
    config.data.source_sequence = 12;
    config.data.target_sequence = 8;
  } else {
    config.data.sequence = 8;
  }
  return config;
}

/// Sides of a block of other widths, multiplied, put side by side and added; norms of their own, shared ones
/// and none; states that pass by a block.
const std::string every_kind =
    "{name: every, encoder: {cells: 1, blocks: ["
    "{left: {norm: shared, layer: conv-3, width: 2, activation: relu}, right: {norm: shared, layer: "
    "separable-3, width: 1/2}, combine: multiply}, "
    "{left: {norm: own, layer: glu, activation: silu}, right: {input: 2, layer: conv-1, width: 1/2, "
    "activation: gelu}, combine: concat, residual: 2}, "
    "{left: {norm: own, layer: light-3-4, activation: silu}, right: {input: 2, norm: own, layer: identity, "
    "activation: gelu}, combine: add}, "
    "{left: {norm: own, layer: conv-1, activation: none}, right: none}]}, "
    "decoder: {cells: 1, blocks: ["
    "{left: {norm: own, layer: attention-4, activation: silu}, right: {norm: own, layer: cross-4}, "
    "combine: multiply, residual: 1}, "
    "{left: {norm: own, layer: mlp-2, activation: gelu}, right: {input: 2, layer: identity}, combine: "
    "multiply}, "
    "{left: {norm: own, layer: separable-3, width: 2, activation: silu}, right: {input: 2, norm: own, layer: "
    "mlp-2, activation: gelu}, combine: add}, "
    "{left: {norm: shared, layer: normed_mlp-2, activation: silu}, right: {norm: shared, layer: conv-3, "
    "width: 1}, combine: multiply}, "
    "{left: {norm: own, layer: conv-1}, right: {input: 2, layer: conv-1}}]}}";

TEST(CellGradients, OfEveryCombinerWidthAndNorm) {
  Config config = of_cells(every_kind);
  config.data.source_sequence = 8;
  config.data.target_sequence = 4;
  Setting setting = setting_for(config);
  setting.step = 3e-5;
  check_gradients(setting, model_of(config));
}

TEST(CellGradients, DifferInRoundingOnlyBetweenShards) {
  check_rounding(setting_for(of_cells(every_kind)), model_of(of_cells(every_kind)));
}

TEST(Cells, GiveEqualBitsWhenRecomputedOrPutOff) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Config config = of_cells(every_kind);
    Setting setting = setting_for(config);
    setting.dtype = dtype;
    setting.shards = 2;
    const Whole plain = Subject(setting, model_of(config)).gradients();
    Config recomputed = config;
    recomputed.train.recompute = WhichBlocks::block;
    EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain) << "recomputed";
    setting.weight_gradients = Tape::WeightGradients::later;
    EXPECT_TRUE(Subject(setting, model_of(config)).gradients() == plain) << "put off";
    EXPECT_TRUE(Subject(setting, model_of(recomputed)).gradients() == plain) << "both";
  }
}

/// A small Evolved Transformer without dropout, since masks follow from names.
Config whole_evolved() {
  Config config = evolved();
  evolved_transformer::Settings& m = config.model.evolved_transformer;
  m.layers = 2;
  m.decoder_layers = 2;
  m.dropout = m.attention_dropout = 0;
  config.data.special.padding = 98;
  return config;
}

/// The Evolved Transformer of `whole` as a network of the space of its cells, with as many of them.
Config evolved_of_cells(const Config& whole) {
  std::string space = file_of("evolved-transformer.yaml");
  for (const char* count : {"cells: 3", "cells: 4"}) space.replace(space.find(count), 8, "cells: 2");
  Config config = of_cells(space);
  SpaceSettings& m = config.model.subnet;
  m.positions = Places::closed_sinusoids;
  m.dropout = m.attention_dropout = 0;
  config.data = whole.data;
  config.train = whole.train;
  return config;
}

/// What the parts of the Evolved Transformer's cells are called as blocks of a space.
std::map<std::string, std::string> names_of_parts(const Config& cells, const Config& whole) {
  const evolved_transformer::Settings& m = whole.model.evolved_transformer;
  using Parts = std::vector<std::pair<std::string, std::string>>;
  const Parts convolution{
      {"0.norm", "convolution.norm"}, {"0.conv", "convolution.left"}, {"1.conv", "convolution.right"}},
      closing{{"0.norm", "convolution.inner_norm"}, {"0.separable", "convolution.closing"}},
      attention{{"0.norm", "attention.norm"}, {"0.attention", "attention.attention"}},
      mlp{{"0.norm", "mlp.norm"}, {"0.mlp", "mlp.mlp"}};
  const std::vector<Parts> encoder{
      {{"0.norm", "glu.norm"}, {"0.glu", "glu.glu"}}, convolution, closing, attention, mlp},
      decoder{
          {{"0.norm", "parallel.norm"}, {"0.attention", "parallel.attention"}, {"1.cross", "parallel.cross"}},
          {{"0.norm", "convolution.norm"},
           {"0.separable", "convolution.left"},
           {"1.separable", "convolution.right"}},
          closing,
          attention,
          {{"0.norm", "cross.norm"}, {"0.cross", "cross.cross"}},
          mlp};
  std::map<std::string, std::string> names;
  int layer = 0;
  const auto name = [&](const char* side, int count, const std::vector<Parts>& blocks) {
    for (int cell = 0; cell < count; ++cell)
      for (const Parts& parts : blocks) {
        for (const auto& [ours, theirs] : parts) {
          const int block = layer * Space::places_of_cell_block + (ours[0] - '0');
          names[fmt::format("blocks.{}.0{}.", block, ours.substr(1))] =
              fmt::format("{}.{}.{}.", side, cell, theirs);
        }
        ++layer;
      }
  };
  name("encoder", m.layers, encoder);
  name("decoder", m.decoder_layers, decoder);
  EXPECT_EQ(layer, cells.model.subnet.space.layers());
  return names;
}

/// Whole tensors under the names of the other model.
Whole renamed(const Whole& ours, const std::map<std::string, std::string>& names) {
  Whole all;
  for (const auto& [name, values] : ours) {
    std::string other = name;
    for (const auto& [ours_begins, theirs] : names)
      if (name.starts_with(ours_begins)) other = theirs + name.substr(ours_begins.size());
    all[other] = values;
  }
  return all;
}

TEST(Cells, OfTheEvolvedTransformerHaveTheBitsOfThatModel) {
  const Config whole = whole_evolved(), cells = evolved_of_cells(whole);
  const auto names = names_of_parts(cells, whole);
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int shards : {1, 2, 4}) {
      Setting setting = setting_for(whole);
      setting.dtype = dtype;
      setting.shards = shards;
      Subject theirs(setting, model_of(whole)), ours(setting, model_of(cells));
      for (auto& [name, values] : ours.values) {
        const auto other = renamed({{name, values}}, names).begin()->first;
        ASSERT_TRUE(theirs.values.count(other)) << name << " is " << other;
        values = theirs.values.at(other);
        ours.write(name);
      }
      EXPECT_EQ(ours.values.size(), theirs.values.size());
      const Whole wanted = theirs.gradients(), got = renamed(ours.gradients(), names);
      ASSERT_EQ(got.size(), wanted.size());
      for (const auto& [name, gradient] : wanted)
        EXPECT_TRUE(got.at(name) == gradient)
            << name << " in " << name_of(dtype) << ", " << shards << " shards";
      EXPECT_EQ(theirs.loss(), ours.loss());
    }
}

/// Models on paper, with the parameters of the cells between embeddings and softmax.
std::int64_t parameters_of_body(const Config& given) {
  Memory memory(Memory::Kind::counted);
  const auto backend = make_cpu_backend(memory, 1, "auto");
  Communicator tensor(*backend, 1);
  const auto model = make_model(resolve(given), {*backend, tensor, DType::bf16, false, 1});
  std::int64_t sum = 0;
  for (const auto& unit : model->units())
    if (unit->name() != "embedding") sum += unit->parameters();
  return sum;
}

TEST(Cells, OfTheEvolvedTransformerHaveItsParameters) {
  const auto body = [](int width, int heads, int encoder, int decoder) {
    std::string space = file_of("evolved-transformer.yaml");
    const auto put = [&](const std::string& was, const std::string& is) {
      for (std::size_t at = 0; (at = space.find(was, at)) != std::string::npos; at += is.size())
        space.replace(at, was.size(), is);
    };
    put("attention-8", fmt::format("attention-{}", std::max(std::min(2 * heads, 16), heads)));
    put("attention-4", fmt::format("attention-{}", heads));
    put("cross-4", fmt::format("cross-{}", heads));
    put("cells: 3", fmt::format("cells: {}", encoder));
    put("cells: 4", fmt::format("cells: {}", decoder));
    Config config = of_cells(space);
    config.model.subnet.width = width;
    config.model.subnet.positions = Places::closed_sinusoids;
    return parameters_of_body(config);
  };
  EXPECT_EQ(body(128, 4, 3, 4), 2981632);
  EXPECT_EQ(body(512, 8, 3, 4), 47021056);
  EXPECT_EQ(body(640, 16, 9, 10), 196764800);
  EXPECT_EQ(body(1024, 16, 3, 4), 187627520);
}

/// What a choice makes of the branches of a space does not depend on what else they might be.
TEST(Cells, OfAChoiceReadTheStateThatItNames) {
  const std::string branch = "{input: [1, 2], norm: own, layer: [conv-1, identity]}";
  const std::string space = "{name: inputs, decoder: {cells: 1, blocks: 3, left: " + branch +
                            ", right: " + branch + ", combine: [add, multiply]}}";
  // Left and right of the last block: conv-1 of the second state before it, identity of the same.
  const Config config = of_cells(space, {0, 1, 0, 0, 2, 0, 1, 3, 1});
  const auto shapes =
      shapes_of_cells(config.model.subnet.space, &config.model.subnet.choice, config.model.subnet.width);
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].entering(), 16);
  EXPECT_EQ(shapes[0].leaving(), 16) << "the next block reads the newest alone";
  EXPECT_EQ(shapes[1].leaving(), 32);
  EXPECT_EQ(shapes[2].entering(), 32);
  EXPECT_EQ(shapes[2].leaving(), 16);
  Setting setting = setting_for(config);
  setting.step = 3e-5;
  const Whole gradients = Subject(setting, model_of(config)).gradients();
  EXPECT_EQ(norm_of(gradients.at("blocks.3.0.conv.weight")), 0) << "nobody reads what block 1 gives";
  EXPECT_GT(norm_of(gradients.at("blocks.0.0.conv.weight")), 0);
  EXPECT_GT(norm_of(gradients.at("blocks.6.0.conv.weight")), 0);
}

}  // namespace
}  // namespace mindpipe::testing
