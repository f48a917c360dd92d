#include "config/models/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spaces.h"

// Spaces of cells: what they may say, and what is refused.
namespace mindpipe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// A space of one decoder's cell.
std::string decoder_of(const std::string& blocks) { return "{name: x, decoder: {cells: 1, " + blocks + "}}"; }

/// The sentence about a space, behind the place where it stands.
std::string refusal_of(const std::string& space) {
  try {
    space_from(space);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    const std::string what = error.what();
    return what.substr(what.find("model.space"));
  }
  return "accepted";
}

/// Why a network of a space, or all of them, do not fit a width.
std::string misfit_at(const std::string& space, int width, bool all = false, int shards = 1) {
  const Space read = space_from(space);
  const std::vector<int> choice(static_cast<std::size_t>(read.blocks()), 0);
  return misfit_of(read, all ? nullptr : &choice, width, shards);
}

TEST(SpacesOfCells, HaveThreeNumbersForEachBlock) {
  const Space space = space_from(
      "{name: x, encoder: {cells: 2, blocks: 1, left: glu, right: identity}, decoder: {cells: 1, blocks: "
      "[{left: {norm: [own, none], layer: [glu, conv-3], activation: [none, relu], input: 1}}, "
      "{left: glu, right: [identity, {input: 2, layer: glu}], combine: [add, multiply]}]}}");
  EXPECT_TRUE(space.has_cells());
  EXPECT_EQ(space.blocks(), 12);
  EXPECT_EQ(space.layers(), 4);
  EXPECT_EQ(space.encoder.size(), 6u);
  ASSERT_EQ(space.candidates(6).size(), 8u);
  EXPECT_EQ(space.candidates(6)[3],
            (Candidate{CandidateKind::gated, {}, false, {1, CellNorm::none, CellActivation::relu}}))
      << "the last key of a branch turns fastest, its layer slowest";
  EXPECT_EQ(space.candidates(6)[4].kind, CandidateKind::convolution);
  EXPECT_EQ(space.candidates(7)[0].kind, CandidateKind::none) << "there is no right branch";
  EXPECT_EQ(space.candidates(8)[0].kind, CandidateKind::add);
  EXPECT_EQ(space.candidates(11).size(), 2u);
  EXPECT_EQ(space.name_of(4), "right of block 0 in cell 1 of the encoder");
  EXPECT_EQ(space.name_of(11), "combine of block 1 in cell 0 of the decoder");
}

TEST(SpacesOfCells, GiveTheFirstBlockOfACellTheOneStateThatIsThere) {
  const Space space = space_from(decoder_of(
      "blocks: 2, left: {input: [1, 2], layer: [glu, conv-3]}, right: [identity, {input: 2, layer: "
      "identity}]"));
  EXPECT_EQ(space.candidates(0).size(), 2u);
  EXPECT_EQ(space.candidates(1).size(), 1u);
  EXPECT_EQ(space.candidates(3).size(), 4u);
  EXPECT_EQ(space.candidates(4).size(), 2u);
}

TEST(SpacesOfCells, CarryTheOlderStateWhereTheNextBlockMayReadIt) {
  const Space space =
      space_from(decoder_of("blocks: [{left: {layer: conv-3, width: 4}}, {left: {layer: conv-1, width: 1/2}, "
                            "right: {input: 2, layer: "
                            "identity}}, {left: glu}]"));
  const std::vector<int> choice(9, 0);
  const auto shapes = shapes_of_cells(space, &choice, 16);
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].entering(), 16);
  EXPECT_EQ(shapes[0].leaving(), 64 + 16);
  EXPECT_EQ(shapes[1].entering(), 80);
  EXPECT_EQ(shapes[1].left, 8);
  EXPECT_EQ(shapes[1].right, 16);
  EXPECT_EQ(shapes[1].leaving(), 16);
  EXPECT_EQ(shapes[2].leaving(), 16);
}

TEST(SpacesOfCells, AreRefusedAsTheyAreWritten) {
  EXPECT_EQ(refusal_of(decoder_of("blocks: [{left: {input: 3, layer: glu}}]")),
            "model.space.decoder.blocks[0].left.input is '3'; allowed: a whole number from 1 to 2 (a block "
            "reads the state before it, 1, or the one before that, 2)");
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: {input: 2, layer: glu}}]")),
              EndsWith("begins with a block that reads state 2, but one state alone enters a cell; take 1"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: 1, left: glu, residual: 2")),
              HasSubstr("one state alone enters a cell"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: {layer: glu, width: 2}}]")),
              HasSubstr("gives glu a width (conv-K and separable-K take one"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: {layer: none}}]")),
              HasSubstr("left is none (a block has a left branch; its right one may be none)"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: glu, right: {layer: none, norm: own}}]")),
              HasSubstr("has the layer none, which takes no input, norm or activation"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: {norm: shared, layer: glu}, right: glu}]")),
              HasSubstr("has a shared norm, which both branches read"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: cross-2}]")),
              HasSubstr("has cross-2 in block 0 of a cell "
                        "(it attends to an encoder"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: [glu, glu]}]")),
              HasSubstr("has glu twice with the same input, norm, width and activation"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: add}]")), HasSubstr("left is 'add'; allowed: conv-K, "));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: glu, combine: glu}]")),
              HasSubstr("combine is 'glu'; allowed: add, multiply, concat"));
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: {layer: glu, norm: batch}}]")),
              HasSubstr("norm is 'batch'; allowed: none, own, shared"));
  EXPECT_THAT(
      refusal_of(decoder_of("blocks: [{left: glu}], right: glu")),
      HasSubstr(
          "right conflicts with model.space.decoder.blocks, which already lists the branches of each block; "
          "remove model.space.decoder.right"));
  EXPECT_THAT(
      refusal_of("{name: x, repeat: 2, decoder: {cells: 1, blocks: [{left: glu}]}}"),
      HasSubstr("repeat does not go with cells, which name each branch once; remove model.space.repeat"));
  EXPECT_THAT(refusal_of("{name: x, encoder: {blocks: 1, candidates: [glu]}, decoder: {cells: 1, blocks: "
                         "[{left: glu}]}}"),
              HasSubstr("encoder has no cells, and the other side has"));
  EXPECT_THAT(refusal_of("{name: x, decoder: {blocks: 1, candidates: [normed_mlp-2]}}"),
              HasSubstr("candidates is 'normed_mlp-2'; allowed: conv-K, "));
  std::string many = "{norm: [own, none], activation: [none, relu, gelu, silu], layer: [glu";
  for (int taps = 1; taps <= 15; taps += 2)
    for (const char* word : {"conv", "separable", "light-3", "attention", "mlp"})
      many += fmt::format(", {}-{}", word, taps);
  EXPECT_THAT(refusal_of(decoder_of("blocks: [{left: " + many + "]}}]")),
              HasSubstr("candidates, counting all combinations of its values (a branch has 256 at most)"));
}

TEST(SpacesOfCells, MustFitTheirWidths) {
  const auto block = [](const std::string& text) { return decoder_of("blocks: [" + text + "]"); };
  EXPECT_EQ(misfit_at(block("{left: {layer: conv-3, width: 1/3}, right: identity}"), 16),
            "left of block 0 in cell 0 of the decoder conv-3 of width 1/3, which does not divide model.width "
            "16 (the nearest that fit are 15 and 18)");
  EXPECT_EQ(misfit_at(block("{left: {layer: conv-3, width: 2}}"), 16),
            "combine of block 0 in cell 0 of the decoder a state of 32 numbers at the end of a cell, which "
            "gives model.width 16 of them (let a branch of width 1 end it)");
  EXPECT_EQ(misfit_at(block("{left: {layer: conv-3, width: 1/2}}, {left: attention-16}, {left: conv-1}"), 16),
            "left of block 1 in cell 0 of the decoder attention-16, whose heads do not divide model.width 8 "
            "(the nearest that fit are attention-8)");
  EXPECT_EQ(misfit_at(block("{left: glu, right: glu, combine: concat}, {left: conv-1}"), 16), "");
}

TEST(SpacesOfCells, OfASupernetHaveStatesOfOneWidth) {
  const auto block = [](const std::string& text) { return decoder_of("blocks: [" + text + "]"); };
  EXPECT_EQ(
      misfit_at(block("{left: {layer: conv-3, width: 4}}, {left: conv-1}"), 16, true),
      "left of block 0 in cell 0 of the decoder conv-3 of width 4 (in a supernet all are as wide as the "
      "model; write one network of it, model.kind: subnet)");
  EXPECT_THAT(misfit_at(block("{left: glu, right: glu, combine: [add, concat]}"), 16, true),
              HasSubstr("concat, which makes a wider state"));
  EXPECT_THAT(
      misfit_at(block("{left: {norm: shared, layer: glu}, right: {norm: shared, layer: glu}}"), 16, true),
      HasSubstr("a shared norm (in a supernet each branch has its own"));
  EXPECT_THAT(misfit_at(block("{left: {layer: [glu, attention-3]}}"), 16, true),
              HasSubstr("attention-3, whose heads do not divide"));
}

}  // namespace
}  // namespace mindpipe
