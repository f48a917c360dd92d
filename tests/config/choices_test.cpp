#include "config/models/choices.h"

#include <gtest/gtest.h>

#include "spaces.h"

namespace mindpipe {
namespace {

TEST(ChosenNetworks, SeeTheSourceInBlocksThatAttendToTheEncoder) {
  const Space pairs = space_from(
      "{name: p, encoder: {blocks: 2, candidates: [glu, identity]}, "
      "decoder: {blocks: 3, candidates: [attention-4, cross-4, glu]}}");
  EXPECT_EQ(blocks_that_see_the_source(pairs, {0, 1, 1, 2, 1}), (std::vector{2, 4}));
  EXPECT_EQ(blindness_of(pairs, {0, 1, 1, 2, 0}), "");
  EXPECT_EQ(blindness_of(pairs, {1, 1, 0, 2, 0}),
            "no block attends to the encoder, so the network never sees its source (block 2 with 1 "
            "(cross-4), block 3 with 1 (cross-4), block 4 with 1 (cross-4) would)");
  const Space many = space_from(
      "{name: m, encoder: {blocks: 1, candidates: [glu]}, decoder: {blocks: 9, candidates: [glu, cross-2]}}");
  EXPECT_TRUE(blindness_of(many, std::vector<std::uint8_t>(10, 0)).ends_with("(cross-2) and 3 more would)"));
  const Space blind = space_from(
      "{name: b, encoder: {blocks: 1, candidates: [glu]}, decoder: {blocks: 1, candidates: [glu]}}");
  EXPECT_TRUE(blindness_of(blind, {0, 0}).ends_with("(none of b does)"));
  const Space texts = space_from("{name: t, decoder: {blocks: 2, candidates: [glu]}}");
  EXPECT_EQ(blindness_of(texts, {0, 0}), "") << "there is no source";
}

TEST(TwoSpaces, DifferInTheFirstBlockThatHasOtherNetworks) {
  const auto decoder = [](const std::string& blocks) {
    return space_from("{name: any, decoder: {blocks: " + blocks + "}}");
  };
  const Space wanted = decoder("[[glu, mlp-2], [conv-3, attention-2]]");
  EXPECT_EQ(difference(space_from("{name: other, decoder: {blocks: [[glu, mlp-2], [conv-3, attention-2]]}}"),
                       wanted),
            "")
      << "a name makes no other space";
  EXPECT_EQ(difference(decoder("[[glu, mlp-4], [conv-1, attention-2]]"), wanted),
            "candidate 1 of block 0 is mlp-4 and not mlp-2");
  EXPECT_EQ(difference(decoder("[[glu, mlp-2], [conv-3]]"), wanted),
            "block 1 is one of 1 candidates and not of 2");
  EXPECT_EQ(difference(decoder("[[glu, mlp-2]]"), wanted), "it has 1 blocks and not 2");
  EXPECT_EQ(difference(wanted, decoder("[[glu, mlp-2]]")), "it has 2 blocks and not 1");
  const Space pairs =
      space_from("{name: p, encoder: {blocks: [[glu, mlp-2]]}, decoder: {blocks: [[conv-3, attention-2]]}}");
  EXPECT_EQ(difference(pairs, wanted), "block 0 is the encoder's and not the decoder's");
}

}  // namespace
}  // namespace mindpipe
