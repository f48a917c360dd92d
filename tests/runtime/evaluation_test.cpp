#include "runtime/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/generator.h"
#include "runtime/held_out.h"

namespace mindpipe {
namespace {

TEST(Evaluation, HasSharesOfWhatCounts) {
  Evaluation e;
  EXPECT_EQ(e.loss(), 0);
  EXPECT_EQ(e.accuracy(), 0) << "of nothing";
  EXPECT_EQ(e.exact(), 0);
  e.add({.losses = 6, .targets = 3, .hits = {2, 3, 1, 2}});
  e.add({.losses = 2, .targets = 1, .hits = {0, 1, 0, 1}});
  EXPECT_EQ(e.loss(), 2);
  EXPECT_EQ(e.perplexity(), std::exp(2));
  EXPECT_EQ(e.accuracy(), 0.5);
  EXPECT_EQ(e.within_five(), 1);
  EXPECT_EQ(e.exact(), 1.0 / 3);
  EXPECT_EQ(e.samples(), 3);
}

/// What is found of each held-out sample by its logits one after the other, in plain loops.
Evaluation found_by_logits(const Config& config, Worker& worker, Corpus& corpus) {
  Generator generator(config, worker);
  Evaluation found;
  for (std::int64_t sample = 0; sample < corpus.samples(); ++sample) {
    std::vector<std::int32_t> tokens(8), targets(8);
    FieldTensors to;
    to.set(field::tokens, {tokens.data(), {1, 8}, DType::i32});
    to.set(field::targets, {targets.data(), {1, 8}, DType::i32});
    corpus.batch(sample, to);
    generator.restart();
    std::int64_t right = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::vector<float> logits = generator.append({tokens[i]});
      const auto target = static_cast<std::size_t>(targets[i]);
      double sum = 0;
      int before = 0;
      for (std::size_t word = 0; word < logits.size(); ++word) {
        sum += std::exp(static_cast<double>(logits[word]));
        before += logits[word] > logits[target] || (logits[word] == logits[target] && word < target);
      }
      found.losses += std::log(sum) - static_cast<double>(logits[target]);
      ++found.targets;
      right += before == 0;
      found.hits[Hits::within_five] += before < 5;
    }
    found.hits[Hits::right] += right;
    found.hits[Hits::exact] += right == 8;
    ++found.hits[Hits::samples];
  }
  return found;
}

TEST(Evaluation, IsThatOfTheLogitsOfEverySample) {
  for (const ModelKind kind : {ModelKind::gpt, ModelKind::subnet}) {
    SCOPED_TRACE(name_of(kind));
    const HeldOut files;
    Config config = model_for(kind, files.source(kind, 25));
    config.reproducible = {1, 1};
    config = resolve(config);
    Worker worker(config, {});
    learn_in_part(worker);
    Corpus corpus = held_out_once(config);
    ASSERT_EQ(corpus.samples(), 25);
    const Evaluation found = worker.evaluator().evaluate(corpus, batches_of(corpus, config)),
                     wanted = found_by_logits(config, worker, corpus);
    EXPECT_EQ(found.hits, wanted.hits);
    EXPECT_EQ(found.targets, wanted.targets);
    EXPECT_NEAR(found.loss(), wanted.loss(), 1e-5);
    EXPECT_GT(wanted.exact(), 0);
    EXPECT_LT(wanted.exact(), 1);
    EXPECT_GT(wanted.within_five(), wanted.accuracy());
  }
}

}  // namespace
}  // namespace mindpipe
