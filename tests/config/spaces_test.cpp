#include "spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/check.h"

namespace mindpipe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// A file in a folder of its own, gone after the test.
class SpaceFile {
 public:
  explicit SpaceFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("mindpipe_space_" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~SpaceFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string words_of(const std::vector<Candidate>& candidates) {
  std::string words;
  for (const Candidate& candidate : candidates) words += candidate.word() + " ";
  return words;
}

/// The sentence about a space, without the file's name: ":3: decoder.blocks is ...".
std::string complaint_about(const std::string& text) {
  const SpaceFile file(text);
  try {
    space_from(file.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    const std::string sentence = error.what();
    EXPECT_TRUE(sentence.starts_with(file.path())) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    return sentence.substr(std::min(sentence.size(), file.path().size()));
  }
  return "accepted";
}
/// The sentence about a decoder alone, on its second line.
std::string decoder_complaint(const std::string& decoder) {
  return complaint_about("name: x\ndecoder: " + decoder + "\n");
}

TEST(Spaces, ThatHaveWordsHaveAsManyCandidatesAsTheirPaperSays) {
  for (int repeat = 1; repeat <= 4; ++repeat) {
    const Space space = space_from("nlp.c" + std::to_string(4 - repeat));
    EXPECT_EQ(space.blocks(), 48);
    EXPECT_EQ(space.encoder.size(), 24u);
    for (int block = 0; block < 48; ++block) {
      EXPECT_EQ(space.candidates(block).size(), 24u * static_cast<std::size_t>(repeat));
      EXPECT_EQ(space.encodes(block), block < 24);
    }
    EXPECT_EQ(space.written, space.name);
  }
  const Space space = space_from("nlp.c3");
  const std::string first =
      "conv-1 conv-3 separable-3 separable-5 separable-7 separable-9 separable-11 light-3-1 light-3-4 "
      "light-3-16 light-5-1 light-5-4 light-5-16 light-7-1 light-7-4 light-7-16 light-15-1 light-15-4 "
      "light-15-16 attention-4 attention-8 attention-16 glu ";
  for (int block = 0; block < 24; ++block) {
    EXPECT_EQ(words_of(space.encoder[block]), first + "identity ");
    EXPECT_EQ(words_of(space.decoder[block]) == first + "cross-8 ", block % 6 != 5) << block;
  }
  for (int block : {5, 11, 17, 23})
    for (int i = 0; i < 24; ++i)
      EXPECT_EQ(space.decoder[block][i].word(), i % 3 == 0 ? "cross-4" : i % 3 == 1 ? "cross-8" : "cross-16");
}

TEST(Spaces, ListBlocksThatDifferAndRepeatWhatTheyList) {
  const Space space = space_from("{name: a, repeat: 2, decoder: {blocks: [[glu, mlp-4], [light-3-2]]}}");
  EXPECT_FALSE(space.has_encoder());
  EXPECT_EQ(space.blocks(), 2);
  EXPECT_EQ(words_of(space.candidates(0)), "glu mlp-4 glu mlp-4 ");
  EXPECT_EQ(words_of(space.candidates(1)), "light-3-2 light-3-2 ");
  EXPECT_EQ(space.candidates(1)[0], (Candidate{CandidateKind::light, {3, 2}}));
}

TEST(Spaces, StandInAConfigurationAsAWordAFileOrAllOfThem) {
  const std::string text = "{name: b, decoder: {blocks: 2, candidates: [glu, mlp-4]}}";
  const SpaceFile file("# a space\nname: b\ndecoder:\n  blocks: 2\n  candidates: [glu,\n    mlp-4]\n");
  const Space space = space_from(file.path());
  EXPECT_EQ(space.written, text);
  EXPECT_EQ(space_from(text), space);
  Config config;
  config.run.dir = "d";
  config.data.train = {{"corpus", 1}};
  choose(config, text, {1, 0});
  config = resolve(config);
  const SpaceFile written(to_yaml(config));
  EXPECT_EQ(read_config(written.path(), {}), config);
  const Config other = read_config(written.path(), {"model.space=nlp.c3",
                                                    "model.choice=[" +
                                                        [] {
                                                          std::string zeros = "0";
                                                          for (int i = 1; i < 48; ++i) zeros += ", 0";
                                                          return zeros;
                                                        }() +
                                                        "]",
                                                    "data.sequence=auto", "model.width=64"});
  EXPECT_EQ(other.model.subnet.space, space_from("nlp.c3"));
  EXPECT_THAT(to_yaml(other), HasSubstr("\n  space: nlp.c3\n"));
}

TEST(Spaces, AreRefusedWithFileLineAndKey) {
  EXPECT_EQ(complaint_about("- a\n"),
            ": is a list (a space is a mapping of name, encoder and decoder, or name and pictures)");
  EXPECT_EQ(complaint_about(""),
            ": is empty (a space is a mapping of name, encoder and decoder, or name and pictures)");
  EXPECT_EQ(complaint_about("decoder: {blocks: 1, candidates: [glu]}\n"),
            ":1: name is missing; add it: what it is called");
  EXPECT_EQ(complaint_about("name: x\nencoder: {blocks: 1, candidates: [glu]}\n"),
            ":1: decoder is missing; add it: its blocks and their candidates");
  EXPECT_EQ(complaint_about("name: x\nblocks: 3\n"),
            ":2: blocks is not a setting (a space has name, repeat, encoder, decoder, pictures)");
  EXPECT_EQ(complaint_about("name: a b\ndecoder: {blocks: 1, candidates: [glu]}\n"),
            ":1: name is 'a b'; allowed: up to 80 letters, digits, dots, hyphens and underscores");
  EXPECT_EQ(complaint_about("name: x\nrepeat: 0\ndecoder: {blocks: 1, candidates: [glu]}\n"),
            ":2: repeat is '0'; allowed: a whole number from 1 to 256");
  EXPECT_EQ(complaint_about("name: x\nname: y\n"), ":2: 'name' is set a second time (the first is at " +
                                                       SpaceFile("").path() + ":1; keep one of them)");
}

TEST(Spaces, OfADecoderAreRefusedAsTheyAreWritten) {
  EXPECT_EQ(decoder_complaint("[glu]"),
            ":2: decoder is a list; allowed: a section with blocks, candidates, every");
  EXPECT_EQ(decoder_complaint("{blocks: 1, candidate: [glu]}"),
            ":2: decoder.candidate is not a setting (the decoder of a space has blocks, candidates, every); "
            "did you mean candidates?");
  EXPECT_EQ(decoder_complaint("{candidates: [glu]}"),
            ":2: decoder.blocks is missing; add it: how many there are, or a list of lists of candidates");
  EXPECT_EQ(decoder_complaint("{blocks: 1}"),
            ":2: decoder.candidates is missing; add it: the layers that a block may be");
  EXPECT_EQ(decoder_complaint("{blocks: \"3\", candidates: [glu]}"),
            ":2: decoder.blocks is \"3\"; allowed: a whole number from 1 to 4096, or a list with a list of "
            "candidates for each block");
  EXPECT_EQ(decoder_complaint("{blocks: 1, candidates: []}"),
            ":2: decoder.candidates is an empty list (a block is one of its candidates; name one at least)");
  EXPECT_EQ(decoder_complaint("{blocks: [[glu], []]}"),
            ":2: decoder.blocks[1] is an empty list (a block is one of its candidates; name one at least)");
  EXPECT_EQ(decoder_complaint("{blocks: []}"), ":2: decoder.blocks lists 0 blocks (from 1 to 4096)");
  EXPECT_EQ(
      decoder_complaint("{blocks: [[glu]], candidates: [glu]}"),
      ":2: decoder.candidates conflicts with decoder.blocks, which already lists candidates for each block; "
      "remove decoder.candidates");
  EXPECT_THAT(decoder_complaint("{blocks: [glu]}"),
              StartsWith(":2: decoder.blocks[0] is 'glu'; allowed: a list of conv-K, "));
}

TEST(Spaces, RefuseWordsThatNameNoCandidate) {
  const std::string words = "conv-K, separable-K, light-K-R, attention-H, cross-H, glu, mlp-R, identity";
  for (const char* word : {"lstm", "conv", "conv-", "conv-3-1", "conv-03", "conv--3", "conv-+3", "light-3",
                           "light-3-4-", "glu-2", "identity-1", "attention-0", "mlp-99999999999", "mlp-1.5"})
    EXPECT_THAT(decoder_complaint(fmt::format("{{blocks: 1, candidates: [glu, {}]}}", word)),
                StartsWith(fmt::format(":2: decoder.candidates is '{}'; allowed: {}", word, words)));
  const std::string misspelt = decoder_complaint("{blocks: 1, candidates: [atention-4]}");
  EXPECT_THAT(misspelt, EndsWith("; did you mean attention-4?"));
  EXPECT_EQ(decoder_complaint("{blocks: 1, candidates: [conv-4]}"),
            ":2: decoder.candidates is 'conv-4', which has no row in its middle (take conv-3 or conv-5)");
  EXPECT_EQ(decoder_complaint("{blocks: 1, candidates: [light-17-4]}"),
            ":2: decoder.candidates is 'light-17-4', which reaches over 17 rows (at most 15 are seen; take "
            "light-15-4)");
}

TEST(Spaces, RefuseMoreCandidatesThanAChoiceHasNumbers) {
  std::string list = "glu";
  for (int i = 1; i < 256; ++i) list += ", glu";
  EXPECT_EQ(decoder_complaint("{blocks: 1, candidates: [" + list + "]}"), "accepted");
  EXPECT_EQ(decoder_complaint("{blocks: 1, candidates: [" + list + ", glu]}"),
            ":2: decoder.candidates has 257 candidates (a block has 256 at most)");
  EXPECT_EQ(
      complaint_about("name: x\nrepeat: 86\ndecoder:\n  blocks: 1\n  candidates: [glu, mlp-2, mlp-4]\n"),
      ":5: decoder.candidates has 258 candidates, 3 of them 86 times (a block has 256 at most)");
}

TEST(Spaces, RefuseAttentionToAnEncoderThatIsNotThere) {
  EXPECT_EQ(
      decoder_complaint("{blocks: 2, candidates: [glu, cross-4]}"),
      ":2: decoder.candidates has cross-4 in block 0 (it attends to an encoder, and the space has none; "
      "add encoder)");
  EXPECT_EQ(
      decoder_complaint("{blocks: [[glu], [cross-4]]}"),
      ":2: decoder.blocks has cross-4 in block 1 (it attends to an encoder, and the space has none; add "
      "encoder)");
  EXPECT_EQ(decoder_complaint("{blocks: 2, candidates: [glu], every: {2: [cross-4]}}"),
            ":2: decoder.every names blocks that attend to an encoder, but the space has no encoder; add "
            "encoder, or "
            "remove decoder.every");
  const std::string decoder = "decoder: {blocks: 1, candidates: [glu]}\n";
  EXPECT_EQ(complaint_about("name: x\nencoder: {blocks: 1, candidates: [cross-2]}\n" + decoder),
            ":2: encoder.candidates has cross-2 in block 0 (an encoder attends to itself alone; take "
            "attention-H)");
  EXPECT_EQ(
      complaint_about("name: x\nencoder: {blocks: 1, candidates: [glu], every: {1: [glu]}}\n" + decoder),
      ":2: encoder.every is not a setting (the encoder of a space has blocks, candidates)");
}

TEST(Spaces, RefuseEveryWhereItNamesNoBlocks) {
  const auto every = [](const std::string& text) {
    return complaint_about(
        "name: x\nencoder: {blocks: 1, candidates: [glu]}\ndecoder:\n  blocks: 4\n  "
        "candidates: [glu]\n  every: " +
        text + "\n");
  };
  EXPECT_EQ(every("{2: [cross-4]}"), "accepted");
  EXPECT_EQ(every("{5: [cross-4]}"), ":6: decoder.every is '5'; allowed: a whole number from 1 to 4");
  EXPECT_EQ(every("6"),
            ":6: decoder.every is '6'; allowed: a number and candidates, like {6: [cross-4, cross-8]}");
  EXPECT_EQ(every("{2: [cross-4, glu]}"),
            ":6: decoder.every.2 is 'glu'; allowed: cross-H (these blocks attend to the encoder, whatever is "
            "chosen)");
  EXPECT_EQ(
      complaint_about("name: x\nencoder: {blocks: 1, candidates: [glu]}\n"
                      "decoder: {blocks: [[glu]], every: {1: [cross-4]}}\n"),
      ":3: decoder.every conflicts with decoder.blocks, which already lists the candidates of each block; "
      "name these there");
}

/// The sentence about a configuration with these overrides; the space stands in it.
std::string network_complaint(const std::vector<std::string>& overrides) {
  std::vector<std::string> all{
      "run.dir=d",
      "data.train=corpus",
      "model.kind=subnet",
      "model.space={name: s, decoder: {blocks: 3, candidates: [attention-4, light-3-4, mlp-2, glu]}}",
      "model.choice=[0, 1, 2]",
      "model.width=64"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const SpaceFile file("seed: 1\n");
  try {
    read_config(file.path(), all);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(Choices, NameACandidateOfEachBlock) {
  EXPECT_EQ(network_complaint({}), "accepted");
  EXPECT_EQ(network_complaint({"model.choice=[0, 1]"}),
            "command line: model.choice has 2 numbers, and model.space, s, has 3 blocks (one number for each "
            "block)");
  EXPECT_EQ(network_complaint({"model.choice=[0, 4, 2]"}),
            "command line: model.choice says 4 for block 1, which has 4 candidates (0 to 3)");
  EXPECT_EQ(network_complaint({"model.choice=[0, -1, 2]"}),
            "command line: model.choice is '-1'; allowed: a list of whole numbers from 0 to 255");
  EXPECT_EQ(
      network_complaint({"model.space={name: s, decoder: {blocks: 1, candidates: [mlp-0]}}"}),
      "command line: model.space.decoder.candidates is 'mlp-0'; allowed: conv-K, separable-K, light-K-R, "
      "attention-H, cross-H, glu, mlp-R, identity");
  EXPECT_EQ(network_complaint({"model.space=nlp.c5"}),
            "command line: model.space is 'nlp.c5'; allowed: cv.c1, cv.c2, cv.c3, nlp.c0, nlp.c1, nlp.c2, "
            "nlp.c3, a file that "
            "describes a space, or what stands in such a file (no such file is there; its path is taken from "
            "the directory of the command); did you mean nlp.c0?");
}

TEST(Choices, FitTheWidthAndTheShards) {
  EXPECT_EQ(network_complaint({"model.width=66"}),
            "command line: model.choice makes block 0 attention-4, whose heads do not divide model.width 66 "
            "(the nearest that fit are attention-3 and attention-6)");
  EXPECT_EQ(network_complaint({"model.width=66", "model.choice=[3, 1, 2]"}),
            "command line: model.choice makes block 1 light-3-4, whose weights are for 4 channels each, of "
            "model.width 66 (the nearest that fit are light-3-3 and light-3-6)");
  EXPECT_EQ(network_complaint({"model.width=66", "model.choice=[3, 3, 2]"}), "accepted")
      << "what is not chosen need not fit";
  EXPECT_EQ(network_complaint({"reproducible.tensor=8"}),
            "command line: model.choice makes block 0 attention-4, whose heads 8 logical tensor shards "
            "(reproducible.tensor) do not divide (the nearest that fit are attention-8)");
  EXPECT_EQ(network_complaint({"model.width=6", "model.choice=[3, 3, 2]", "reproducible.tensor=8"}),
            "command line: model.choice makes block 2 mlp-2, whose inner width 12 8 logical tensor shards "
            "(reproducible.tensor) do not divide (the nearest that fit are mlp-4)");
  EXPECT_EQ(network_complaint({"model.space={name: s, decoder: {blocks: 1, candidates: [mlp-999999]}}",
                               "model.choice=[0]"}),
            "command line: model.choice makes block 0 mlp-999999, whose inner width 63999936 is beyond "
            "4194304, the widest of all (the nearest that fit are mlp-65536)");
  EXPECT_EQ(network_complaint({"reproducible.tensor=4", "data.sequence=30"}),
            "command line: reproducible.tensor is 4 and data.sequence 30 (every logical shard gets an equal "
            "part; the nearest that divides all that is cut is 3 or 5)");
}

TEST(Choices, HaveSamplesOfTheirSpace) {
  EXPECT_EQ(network_complaint({"data.target_sequence=8"}),
            "command line: data.target_sequence is 8, but model.space, s, has no encoder (its samples have "
            "data.sequence); leave it out");
  EXPECT_EQ(network_complaint({"data.sequence=300"}),
            "command line: data.sequence is 300 and model.context 256 (a sample fits the context)");
  const std::string pairs =
      "model.space={name: p, encoder: {blocks: 1, candidates: [glu]}, decoder: {blocks: 2, candidates: "
      "[glu]}}";
  EXPECT_EQ(network_complaint({pairs, "model.choice=[0, 0, 0]"}), "accepted");
  EXPECT_EQ(network_complaint({pairs, "model.choice=[0, 0, 0]", "data.sequence=8"}),
            "command line: data.sequence is 8, but model.space, p, has an encoder (its samples have "
            "data.source_sequence and data.target_sequence); leave it out");
}

}  // namespace
}  // namespace mindpipe
