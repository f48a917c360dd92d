#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "make_backend.h"
#include "models/model.h"
#include "spaces.h"
#include "text_model.h"

namespace mindpipe {
namespace {

/// A small model with random weights on T shards of one rank, asked for the logits behind its last token.
class Speaker {
 public:
  Speaker(const Config& config, int shards)
      : config_(config),
        tensor_(*backend_, shards),
        model_(make_model(config, {*backend_, tensor_, DType::f64, false, 1})) {
    for (auto& unit : model_->units()) {
      unit->lay_out({shards, shards, 0}, shards, 0, DType::f64);
      unit->allocate_values(memory_);
      std::vector<float> numbers(unit->flat_count());
      RandomStream{3, purpose_of(unit->name())}.normals(0, numbers.size(), 0.3f, numbers.data());
      for (std::size_t i = 0; i < numbers.size(); ++i)
        unit->flat_values().as<double>()[i] = static_cast<double>(numbers[i]);
    }
  }

  /// The logits behind `tokens`, which are read in pieces of these lengths.
  std::vector<double> logits(std::vector<std::int32_t> tokens, const std::vector<int>& pieces) {
    Arena kept(memory_, MemoryClass::activations, 1 << 22), scratch(memory_, MemoryClass::workspace, 1 << 22),
        caches(memory_, MemoryClass::activations, 1 << 22), out(memory_, MemoryClass::boundary, 1 << 16);
    Tape tape(*backend_, kept, scratch, &caches);
    tape.mode = Tape::Mode::generate;
    tape.logits = out.take({tensor_.logical(), 1, padded() / tensor_.logical()}, DType::f64);
    for (int length : pieces) {
      tape.batch.samples = 1;
      tape.batch.fields.set(field::tokens, {tokens.data() + tape.position, {1, length}, DType::i32});
      Boundary boundary;
      for (Model::Block& block : model_->blocks()) boundary = block.layer->forward(boundary, tape);
      tape.position += length;
      tape.clear();
    }
    const auto* first = tape.logits.as<double>();
    return {first, first + text_model(config_).vocabulary};
  }

 private:
  std::int64_t padded() const {
    const ParamSpec& table = model_->units().front()->params()[0];
    return table.rows();
  }
  Config config_;
  Memory memory_{Memory::Kind::host};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(memory_, 1, "auto");
  Communicator tensor_;
  std::unique_ptr<Model> model_;
};

Config small(bool llama) {
  Config config;
  gpt::Settings& m = config.model.gpt;
  m.layers = 2;
  m.width = 32;
  m.heads = 8;
  m.context = 12;
  m.vocabulary = 100;
  m.dropout = m.attention_dropout = 0.5;  // nothing is dropped when nobody learns
  if (llama) {
    m.positions = Positions::rotary;
    m.norm = ModelNorm::rms;
    m.mlp = MlpKind::swiglu;
    m.bias = m.tied = false;
    m.key_value_heads = 4;
  }
  return resolve(config);
}

/// A network of a space whose convolutions reach over more rows than a piece has, one of them over more than
/// a text has.
Config of_space() {
  Config config;
  choose(config,
         "{name: texts, decoder: {blocks: [[conv-5], [light-15-2], [attention-8], [separable-3], [glu], "
         "[mlp-2], [conv-1], [identity]]}}",
         std::vector<int>(8, 0));
  subnet::Settings& m = config.model.subnet;
  m.width = 32;
  m.context = 12;
  m.vocabulary = 100;
  m.dropout = m.attention_dropout = 0.5;
  config.data.special = {97, 98, 99, 96};
  return resolve(config);
}

TEST(Generation, GivesTheSameLogitsForATextReadAtOnceAndInPieces) {
  const std::vector<std::int32_t> tokens{5, 99, 0, 17, 17, 42, 63, 8};
  for (const Config& config : {small(false), small(true), of_space()})
    for (int shards : {1, 2, 4}) {
      Speaker speaker(config, shards);
      const auto at_once = speaker.logits(tokens, {8});
      double largest = 0;
      for (double logit : at_once) largest = std::max(largest, std::abs(logit));
      ASSERT_GT(largest, 0.1);
      for (const std::vector<int>& pieces :
           {std::vector{5, 1, 2}, std::vector{2, 6}, std::vector{1, 1, 1, 1, 1, 1, 1, 1}}) {
        const auto in_pieces = speaker.logits(tokens, pieces);
        for (std::size_t i = 0; i < at_once.size(); ++i)
          ASSERT_NEAR(in_pieces[i], at_once[i], 1e-12 * largest) << "word " << i;
      }
      EXPECT_NE(speaker.logits({6, 99, 0, 17, 17, 42, 63, 8}, {4, 4}), at_once)
          << "the first token is not forgotten";
    }
}

}  // namespace
}  // namespace mindpipe
