#include "config/models/picture_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "spaces.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// The sentence that refuses a description.
std::string refusal_of_pictures(const std::string& text) {
  try {
    space_from(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    return error.what();
  }
  return "read";
}
std::string in_pictures(const std::string& groups, const std::string& candidates) {
  return refusal_of_pictures(
      fmt::format("{{name: s, pictures: {{groups: {}, candidates: {}}}}}", groups, candidates));
}

TEST(PictureSpaces, ThatHaveWordsAreThoseOfTheirPaper) {
  for (const auto& [word, candidates] : {std::pair{"cv.c1", 48}, {"cv.c2", 24}, {"cv.c3", 12}}) {
    const Space space = space_from(word);
    EXPECT_EQ(space.written, word);
    EXPECT_EQ(space.blocks(), 32);
    ASSERT_EQ(space.groups.size(), 4U);
    for (int group = 0; group < 4; ++group) EXPECT_EQ(space.groups[group], (PictureGroup{8, 64 << group}));
    for (int block = 0; block < 32; ++block) {
      ASSERT_EQ(static_cast<int>(space.candidates(block).size()), candidates);
      EXPECT_EQ(space.candidates(block)[0].word(), "conv-3");
      EXPECT_EQ(space.candidates(block)[11].word(), "identity");
      EXPECT_EQ(space.candidates(block)[0].halves, block % 8 == 0);
      const PicturePlace place = picture_place(space, block);
      EXPECT_EQ(place.outputs, 64 << block / 8);
      EXPECT_EQ(place.inputs, block < 8 ? 64 : 64 << (block - 1) / 8);
      EXPECT_EQ(place.halves, block % 8 == 0);
    }
  }
  const Space c3 = space_from("cv.c3");
  std::string words;
  for (const Candidate& candidate : c3.candidates(3)) words += candidate.word() + " ";
  EXPECT_EQ(words,
            "conv-3 conv-5 conv-7 conv-9 separable-3 separable-5 separable-7 dilated-3 dilated-5 max-3 "
            "average-3 identity ");
}

TEST(PictureSpaces, AreReadStrictly) {
  const std::string one = "[{blocks: 1, width: 8}]";
  EXPECT_EQ(in_pictures(one, "[max-3]"), "read");
  EXPECT_EQ(in_pictures(one, "[glu]"),
            "a space: model.space.pictures.candidates is 'glu', a layer for texts (for pictures there are "
            "conv-K, separable-K, dilated-K, max-K, average-K, identity)");
  EXPECT_THAT(
      refusal_of_pictures("{name: s, decoder: {blocks: 1, candidates: [max-3]}}"),
      HasSubstr("model.space.decoder.candidates is 'max-3', a layer for pictures (for texts there are "
                "conv-K, separable-K, light-K-R, "));
  EXPECT_THAT(in_pictures(one, "[max-4]"), HasSubstr("is 'max-4', which has no row in its middle"));
  EXPECT_THAT(in_pictures(one, "[conv-17]"), HasSubstr("at most 15"));
  EXPECT_THAT(in_pictures(one, "[average]"), HasSubstr("is 'average'; allowed: conv-K"));
  EXPECT_EQ(
      in_pictures("3", "[max-3]"),
      "a space: model.space.pictures.groups is '3'; allowed: a list of groups, like [{blocks: 8, width: "
      "64}, {blocks: 8, width: 128}]");
  EXPECT_EQ(in_pictures("[]", "[max-3]"),
            "a space: model.space.pictures.groups lists 0 groups (from 1 to 10; each halves the sides of a "
            "picture)");
  EXPECT_THAT(in_pictures("[{blocks: 0, width: 8}]", "[max-3]"),
              HasSubstr("groups[0].blocks is '0'; allowed: a whole number from 1 to 4096"));
  EXPECT_THAT(in_pictures("[{blocks: 2}]", "[max-3]"), HasSubstr("groups[0].width is missing"));
  EXPECT_THAT(in_pictures("[{blocks: 3000, width: 8}, {blocks: 3000, width: 8}]", "[max-3]"),
              HasSubstr("have 6000 blocks together (at most 4096)"));
  EXPECT_EQ(
      refusal_of_pictures("{name: s, decoder: {blocks: 1, candidates: [glu]}, pictures: {groups: " + one +
                          ", candidates: [max-3]}}"),
      "a space: model.space.decoder conflicts with model.space.pictures, which makes a space of pictures; "
      "remove one of them");
}

/// The configuration of a small network or supernet of pictures, or the sentence that refuses it.
std::string answer_to_pictures(const std::vector<std::string>& settings, Config* read = nullptr) {
  const auto file =
      std::filesystem::temp_directory_path() / ("mindpipe_pictures_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file, std::ios::binary)
      << "run: {dir: d}\ndata: {train: synthetic:shapes}\nmodel:\n  picture_height: 32\n  picture_width: 32\n"
         "  space: {name: s, pictures: {groups: [{blocks: 2, width: 8}, {blocks: 1, width: 16}],"
         " candidates: [conv-3, max-3]}}\n";
  std::string sentence = "accepted";
  try {
    const Config config = read_config(file, settings);
    if (read != nullptr) *read = config;
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    sentence = error.what();
  }
  std::filesystem::remove(file);
  return sentence.substr(sentence.find(": ") == std::string::npos ? 0 : sentence.find(": ") + 2);
}

TEST(PictureSpaces, HaveTheSettingsOfPictures) {
  Config config;
  const std::vector<std::string> network{"model.kind=subnet", "model.choice=[0, 1, 0]"};
  const auto with = [&](const std::string& setting) {
    std::vector<std::string> all = network;
    all.push_back(setting);
    return answer_to_pictures(all);
  };
  ASSERT_EQ(answer_to_pictures(network, &config), "accepted");
  EXPECT_THAT(to_yaml(config), HasSubstr("  picture_height: 32\n"));
  EXPECT_THAT(to_yaml(config), testing::Not(HasSubstr("vocabulary")));
  EXPECT_THAT(to_yaml(config), HasSubstr("norm_momentum"));
  EXPECT_THAT(with("model.vocabulary=3"), HasSubstr("has no model.vocabulary"));
  EXPECT_THAT(with("data.sequence=8"), HasSubstr("has no data.sequence"));
  EXPECT_THAT(with("model.picture_width=30"),
              HasSubstr("model.picture_width is 30, which 4 does not divide (each of the 2 groups of "
                        "model.space, s, halves it; the nearest is 32)"));
  EXPECT_THAT(with("model.mean=[0.1, 0.2]"), HasSubstr("model.mean has 2 numbers"));
  EXPECT_THAT(with("model.choice=[0, 2, 0]"), HasSubstr("model.choice says 2 for block 1"));
  EXPECT_EQ(answer_to_pictures({"model.kind=subnet", "model.choice=[0]", "model.picture_height=4",
                                "model.picture_width=4", "train.micro_batch=1", "model.choice=[0, 0, 0]"}),
            "train.micro_batch is 1 and pictures end as one pixel (batch norm needs more than one value of "
            "each channel)");
  EXPECT_THAT(with("reproducible.tensor=3"), HasSubstr("the last group's pixels"));

  ASSERT_EQ(answer_to_pictures({"model.kind=supernet"}, &config), "accepted");
  EXPECT_EQ(config.supernet.calibrate_batches, 2);
  EXPECT_THAT(to_yaml(config), testing::Not(HasSubstr("norm_momentum")));
  EXPECT_THAT(answer_to_pictures({"model.kind=supernet", "supernet.prices=h200"}),
              HasSubstr("s is a space of pictures (take equal, or a file)"));
  EXPECT_THAT(answer_to_pictures({"model.kind=supernet", "supernet.calibrate_batches=3",
                                  "model.space={name: t, decoder: {blocks: 2, candidates: [glu]}}"}),
              HasSubstr("has no "))
      << "a space of texts, which the command line names, has none of these settings";
}

}  // namespace
}  // namespace mindpipe
