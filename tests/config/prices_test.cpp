#include "config/models/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/check.h"
#include "spaces.h"

namespace mindpipe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// A table of prices in a file, gone after the test.
class PriceFile {
 public:
  explicit PriceFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("mindpipe_prices_" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~PriceFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const std::string small_space = "{name: small, decoder: {blocks: [[glu, mlp-4], [light-3-2, light-5-2]]}}";
const std::string but_candidates = "\nbackward: 2\nupdate: 0.01\nembedding: 0.1\nhead: 0.2\n";

Prices prices_in(const std::string& text, const std::string& space = small_space) {
  const PriceFile file(text);
  return read_prices(file.path(), space_from(space));
}

/// The sentence about a table, without the file's name: ":3: backward is ...".
std::string price_complaint(const std::string& text, const std::string& space = small_space) {
  const PriceFile file(text);
  try {
    read_prices(file.path(), space_from(space));
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.starts_with(file.path())) << sentence;
    return sentence.substr(std::min(sentence.size(), file.path().size()));
  }
  return "accepted";
}

TEST(PricesOfSpaces, AreThoseOfAWordOrOfItsKind) {
  const Prices prices =
      prices_in("unit: 700 us" + but_candidates + "candidates: {glu: 2, mlp: 3, light: 4, light-5-2: 0.5}");
  EXPECT_DOUBLE_EQ(prices.unit, 7e-4);
  EXPECT_EQ(prices.backward, 2);
  EXPECT_EQ(prices.update, 0.01);
  EXPECT_EQ(prices.embedding, 0.1);
  EXPECT_EQ(prices.head, 0.2);
  EXPECT_EQ(prices.candidates, (std::vector<std::vector<double>>{{2, 3}, {4, 0.5}}));
  EXPECT_DOUBLE_EQ(prices_in("unit: 0.25" + but_candidates + "candidates: {glu: 2, mlp: 3, light: 4}").unit,
                   0.25);
}

TEST(PricesOfSpaces, OfWordsAreThoseOfTheBook) {
  for (const char* name : {"nlp.c3", "nlp.c0"}) {
    const Space space = space_from(name);
    const Prices equal = read_prices("equal", space);
    for (const auto& block : equal.candidates) {
      EXPECT_THAT(block, testing::Each(1.0));
    }
    const Prices h200 = read_prices("h200", space);
    EXPECT_EQ(h200, read_prices(MINDPIPE_SOURCE_DIR "/configs/prices/h200.yaml", space));
    const std::vector<double> known{1.5,  3.5,  1.75, 1.75, 1.75, 1.75, 1.75, 0.75, 0.75, 0.75, 0.75, 0.75,
                                    0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 4.8,  4.8,  4.8,  2.7,  0.05};
    EXPECT_THAT(std::vector(h200.candidates[0].begin(), h200.candidates[0].begin() + 24), known);
    EXPECT_THAT(h200.candidates[29], testing::Each(4.8)) << "these attend to the encoder";
  }
  const Space mlps = space_from("{name: m, decoder: {blocks: 1, candidates: [mlp-2, mlp-4, conv-7]}}");
  EXPECT_THAT(read_prices("h200", mlps).candidates[0], testing::ElementsAre(4.5, 8.5, 7.5));
}

TEST(PricesOfSpaces, AreRefusedWithFileLineAndKey) {
  const std::string unit = "unit: 1 ms" + but_candidates;
  EXPECT_EQ(price_complaint("- 1\n"),
            ": is a list (a table of prices is a mapping of unit, candidates and others)");
  EXPECT_EQ(price_complaint(unit + "candidates: {glu: 1, mlp-4: 1, light-3-2: 1}\n"),
            ":6: candidates has no price of light-5-2, a candidate of block 1 of model.space, small; add "
            "light-5-2, or light for all of its kind");
  EXPECT_EQ(price_complaint(unit + "candidates: {mlp: 1, light: 1}\n"),
            ":6: candidates has no price of glu, a candidate of block 0 of model.space, small; add glu");
  EXPECT_THAT(
      price_complaint(unit + "candidates: {gluu: 1, mlp: 1, light: 1}\n"),
      testing::AllOf(HasSubstr(":6: candidates.gluu is no candidate"), EndsWith("; did you mean glu?")));
  EXPECT_EQ(price_complaint(unit + "candidates: {glu: -1, mlp: 1, light: 1}\n"),
            ":6: candidates.glu is '-1'; allowed: a number above 0 to 1000");
  EXPECT_EQ(price_complaint(unit + "candidates: {glu: dear, mlp: 1, light: 1}\n"),
            ":6: candidates.glu is 'dear'; allowed: a number above 0 to 1000");
  EXPECT_THAT(price_complaint(unit + "candidates: 3\n"),
              HasSubstr(":6: candidates is '3'; allowed: a price for"));
  EXPECT_EQ(price_complaint(unit), ":1: candidates is missing; add it: the price of each");
  EXPECT_EQ(price_complaint("unit: 3 weeks" + but_candidates + "candidates: {}\n"),
            ":1: unit is '3 weeks'; allowed: seconds, or a duration like 23h50m, above 0 to 10");
  EXPECT_THAT(price_complaint(unit + "foward: 1\ncandidates: {}\n"),
              HasSubstr(":6: foward is not a setting"));
  EXPECT_THAT(price_complaint(unit + "candidates: {glu: 1}\n",
                              "{name: p, encoder: {blocks: 1, candidates: [glu]}, decoder: {blocks: 1, "
                              "candidates: [glu]}}"),
              HasSubstr("bridge is missing; add it"));
}

TEST(PricesOfSpaces, MayTellOfMovesAndOfSlowStages) {
  const std::string table = "unit: 1 ms" + but_candidates + "candidates: {glu: 1, mlp: 1, light: 1}\n";
  EXPECT_EQ(prices_in(table).move, -1);
  EXPECT_TRUE(prices_in(table).stages.empty());
  EXPECT_EQ(prices_in(table + "move: 1.5\n").move, 1.5);
  EXPECT_EQ(prices_in(table + "stages: [1, 1.2]\n").stages, (std::vector<double>{1, 1.2}));
  EXPECT_THAT(price_complaint(table + "stages: 1.2\n"), HasSubstr("stages is '1.2'; allowed: a list"));
  EXPECT_THAT(price_complaint(table + "stages: [1, 0]\n"), HasSubstr("stages is '0'; allowed: a number"));
}

TEST(PricesOfSpaces, OfARunAreReadWhenItIsResolved) {
  Config config;
  config.run.dir = "d";
  config.data.train = {{"corpus", 1}};
  config.model.kind = ModelKind::supernet;
  config.schedule.kind = ScheduleKind::causal;
  config.model.supernet.space = space_from(small_space);
  for (const char* word : {"", "paper"}) {
    config.supernet.prices = word;
    EXPECT_EQ(prices_of(resolve(config)), std::nullopt);
  }
  config.supernet.prices = "equal";
  EXPECT_EQ(prices_of(resolve(config)), read_prices("equal", config.model.supernet.space));
  const auto sentence = [&](const std::string& prices) -> std::string {
    config.supernet.prices = prices;
    try {
      resolve(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(sentence("h100"), EndsWith("supernet.prices is h100, which is neither paper, equal, h200 nor a "
                                         "file (its path is taken from the directory of the command)"));
  const PriceFile file("unit: 1 ms" + but_candidates + "candidates: {glu: 1}\n");
  EXPECT_THAT(sentence(file.path()),
              HasSubstr(":6: candidates has no price of mlp-4, a candidate of block 0"));
}

}  // namespace
}  // namespace mindpipe
