// ranks: 2 4
#include "runtime/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <limits>

#include "runtime/parity.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A pipeline of two stages, the rest updates, that has seen one batch; blocks: embedding, 3 x (attention,
/// mlp), head.
class Diagnosis : public testing::Test {
 protected:
  Diagnosis() {
    Config config = tiny(Style::gpt2, 1, world_.size / 2);
    config.grid = {1, 2, world_.size / 2, 1};
    config.model.gpt.vocabulary = 256;
    config.model.gpt.dropout = config.model.gpt.attention_dropout = 0;
    config.data.train = {{"synthetic:arithmetic", 1}};
    config = resolve(config);
    worker_.emplace(config, world_);
    share_processors(*worker_);
    corpus_.emplace(config.data, Subset::train, fields_of(config), config.seed, config.train.batch);
  }

  /// Element 3 of the unit's first tensor, on the ranks that have it.
  void set_weight(const std::string& unit, float value) {
    for (int u : worker_->stage().local_units()) {
      Unit& found = worker_->stage().unit(u);
      if (found.name() == unit) found.value(0, 0).as<float>()[3] = value;
    }
  }
  /// The sentence, the same on every rank.
  std::string sentence() {
    worker_->inputs().load(*corpus_, 0);
    const std::string text = diagnose(*worker_);
    std::int64_t hash = static_cast<std::int64_t>(purpose_of(text) >> 8), least = 0, most = 0;
    MPI_Allreduce(&hash, &least, 1, MPI_INT64_T, MPI_MIN, world_.comm);
    MPI_Allreduce(&hash, &most, 1, MPI_INT64_T, MPI_MAX, world_.comm);
    EXPECT_EQ(least, most) << text;
    return text;
  }

  const World world_ = all_ranks();
  std::optional<Worker> worker_;
  std::optional<Corpus> corpus_;
};

TEST_F(Diagnosis, NamesTheFirstWeightOfTheWholeModelOnEveryRank) {
  set_weight("layers.2.mlp", not_a_number);
  EXPECT_THAT(sentence(), HasSubstr("the weight layers.2.mlp.norm.weight"));
  set_weight("layers.0.attention", not_a_number);
  EXPECT_THAT(sentence(), HasSubstr("the weight layers.0.attention.norm.weight"));
}

TEST_F(Diagnosis, NamesTheFirstBlockThoughEveryLaterOneIsNotFiniteEither) {
  set_weight("layers.0.mlp", 3e38f);  // finite; what comes of it is not, on this stage and on the next
  EXPECT_THAT(sentence(), HasSubstr("that of block layers.0.mlp ("));
}

TEST_F(Diagnosis, FindsNothingWhereNothingIs) {
  EXPECT_THAT(sentence(), HasSubstr("weights and activations are finite"));
}

TEST(NumberText, ANanHasNoSign) {
  EXPECT_EQ(number_text(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(number_text(1.5), "1.5");
}

}  // namespace
}  // namespace mindpipe
