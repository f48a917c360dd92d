#include "plans/attention_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mindpipe {
namespace {

AttentionCall some_call() {
  AttentionCall call;
  call.samples = 2;
  call.query_heads = 4;
  call.key_heads = 2;
  call.queries = 128;
  call.keys = 128;
  call.width = 64;
  return call;
}

TEST(PlannedAttention, TheLibraryIsAskedOnlyWhatItAnswersAsWeDo) {
  const std::int32_t lengths[2] = {};
  const auto asked = [&](auto change, DType dtype = DType::bf16) {
    AttentionCall call = some_call();
    change(call);
    return is_planned(call, dtype);
  };
  EXPECT_TRUE(asked([](AttentionCall&) {}));
  EXPECT_FALSE(asked([](AttentionCall&) {}, DType::f32));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.threshold = 1; })) << "dropout: its mask is another function";
  EXPECT_FALSE(asked([](AttentionCall& c) { c.width = 12; }));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.width = 136; }));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.queries = 1; }));
  EXPECT_TRUE(asked([](AttentionCall& c) { c.keys = 64; }));
  EXPECT_TRUE(asked([](AttentionCall& c) {
    c.causal = true;
    c.queries = c.keys = 64;
  }));
  EXPECT_TRUE(asked([&](AttentionCall& c) {
    c.causal = true;
    c.key_lengths = lengths;
  }));
  EXPECT_TRUE(asked([](AttentionCall& c) {
    c.causal = true;
    c.keys = 160;
  }));
  EXPECT_FALSE(asked([](AttentionCall& c) {
    c.causal = true;
    c.keys = 32;
  })) << "rows before any key";
  EXPECT_FALSE(asked([&](AttentionCall& c) {
    c.causal = true;
    c.keys = 160;
    c.key_lengths = lengths;
  })) << "its diagonal would end at each sample's length";
}

TEST(PlannedAttention, KeysThatEndWithinATileAreCountedForThePlan) {
  const auto question = [](std::int64_t keys, bool causal) {
    AttentionCall call = some_call();
    call.keys = keys;
    call.causal = causal;
    return PlannedAttention(call, true);
  };
  EXPECT_TRUE(question(197, false).padded);
  EXPECT_TRUE(question(64, false).padded);
  EXPECT_FALSE(question(256, false).padded) << "whole tiles";
  EXPECT_FALSE(question(197, true).padded) << "the mask ends the rows";
  EXPECT_EQ(question(197, false).lengths_bytes(), 2 * question(197, false).one_length_bytes());
  EXPECT_EQ(question(256, false).lengths_bytes(), 0);
}

TEST(PlannedAttention, APlanIsForAFormAndNotForAddresses) {
  const AttentionCall call = some_call();
  AttentionCall elsewhere = call, wider = call;
  elsewhere.q.data = &elsewhere;
  wider.dq.row = 512;
  EXPECT_EQ(PlannedAttention(call, true), PlannedAttention(elsewhere, true));
  EXPECT_NE(PlannedAttention(call, true), PlannedAttention(wider, true));
  EXPECT_NE(PlannedAttention(call, true), PlannedAttention(call, false));
}

TEST(PlannedAttention, ABackwardKeepsTheGradientOfAllProbabilities) {
  AttentionCall call = some_call();
  call.query_heads = call.key_heads = 12;
  call.samples = 4;
  call.queries = call.keys = 1024;
  const std::size_t probabilities = std::size_t{4} * 12 * 1024 * 1024 * 2, sums = 4 * 12 * 1024 * 4;
  EXPECT_EQ(PlannedAttention(call, true).formula_bytes(), probabilities + sums + 1024);
  EXPECT_EQ(PlannedAttention(call, false).formula_bytes(), 1024);
  call.keys = 1000;
  const PlannedAttention cut(call, true);
  EXPECT_EQ(cut.formula_bytes() - cut.lengths_bytes(), probabilities + sums + 1024) << "whole tiles";
}

/// One sequence of Llama 8B on all heads.
AttentionCall long_call() {
  AttentionCall call = some_call();
  call.samples = 1;
  call.query_heads = 32;
  call.key_heads = 8;
  call.queries = call.keys = 8192;
  call.width = 128;
  return call;
}

TEST(PlannedAttention, WhatTakesTooMuchIsCutIntoTheFewestPiecesThatDoNot) {
  AttentionCall call = long_call();
  const auto pieces = [&](std::size_t most, bool in_pieces = true) {
    return pieces_of(call, true, {.most = most, .in_pieces = in_pieces});
  };
  constexpr std::size_t gib = std::size_t{1} << 30;
  EXPECT_EQ(PlannedAttention(call, true).formula_bytes() >> 20, 4225) << "MiB";
  EXPECT_EQ(pieces(5 * gib), (AttentionPieces{1, 1}));
  EXPECT_EQ(pieces(5 * gib, false), (AttentionPieces{1, 1}));
  EXPECT_EQ(pieces(2 * gib), (AttentionPieces{1, 4}));
  EXPECT_EQ(pieces(gib), (AttentionPieces{1, 8})) << "heads that share keys stay together";
  EXPECT_EQ(pieces(gib / 2), std::nullopt) << "528 MiB are the least";
  EXPECT_EQ(pieces(2 * gib, false), std::nullopt);
  call.samples = 6;
  EXPECT_EQ(pieces(14 * gib), (AttentionPieces{2, 1})) << "samples first";
  EXPECT_EQ(pieces(2 * gib), (AttentionPieces{6, 4}));
  EXPECT_EQ(PlannedAttention(call, true, {6, 4}).samples, 1);
  EXPECT_EQ(PlannedAttention(call, true, {6, 4}).query_heads, 8);
}

/// Which elements a tensor of the graph stands for, read from the heads' views by hand.
TEST(PlannedAttention, TheGraphSaysWhereEveryElementLies) {
  AttentionCall call = long_call();
  const std::int64_t rows = 8192, all = 48, width = 128;
  call.q = call.k = call.v = call.dq = call.dk = call.dv = {nullptr, rows * all * width, all * width};
  call.out = call.dout = {nullptr, rows * 32 * width, 32 * width};
  const std::int32_t lengths[1] = {};
  call.key_lengths = lengths;
  call.scale = 0.25;
  using Graph = AttentionGraph;
  const Graph graph = graph_of(PlannedAttention(call, true));
  const auto expect = [&](Graph::Id id, std::int64_t heads, std::int64_t of_row, bool is_output) {
    EXPECT_EQ(
        graph.at(id),
        (Graph::Tensor{
            id, Graph::Type::bf16, {1, heads, rows, width}, {rows * of_row, width, of_row, 1}, is_output}));
  };
  expect(Graph::q, 32, all * width, false);
  expect(Graph::k, 8, all * width, false);
  expect(Graph::v, 8, all * width, false);
  expect(Graph::out, 32, 32 * width, false);
  expect(Graph::dout, 32, 32 * width, false);
  expect(Graph::dq, 32, all * width, true);
  expect(Graph::dk, 8, all * width, true);
  expect(Graph::dv, 8, all * width, true);
  EXPECT_EQ(graph.at(Graph::log_sum),
            (Graph::Tensor{Graph::log_sum, Graph::Type::f32, {1, 32, rows, 1}, {32 * rows, rows, 1, 1}}));
  EXPECT_EQ(graph.at(Graph::key_lengths).type, Graph::Type::i32);
  EXPECT_TRUE(graph.backward && graph.deterministic && graph.padded);
  EXPECT_EQ(graph.scale, 0.25F);
  EXPECT_EQ(graph.diagonal, Graph::Diagonal::none);
  EXPECT_EQ(graph.tensors.size(), 11);
}

/// In both directions: a backward without the mask of its forward gives gradients that nothing else would
/// find wrong.
TEST(PlannedAttention, TheGraphHasTheMasksOfItsQuestionInBothDirections) {
  using Graph = AttentionGraph;
  constexpr std::int64_t queries = 64, samples = 2;
  const std::int32_t lengths[samples] = {};
  for (const bool backward : {false, true})
    for (const std::int64_t keys : {queries, std::int64_t{100}})
      for (const bool causal : {false, true})
        for (const bool padded : {false, true}) {
          AttentionCall call = some_call();
          call.samples = samples;
          call.queries = queries;
          call.keys = keys;
          call.causal = causal;
          call.key_lengths = padded ? lengths : nullptr;
          const Graph graph = graph_of(PlannedAttention(call, backward));
          const auto what =
              fmt::format("backward {}, {} keys, causal {}, padded {}", backward, keys, causal, padded);
          const Graph::Diagonal wanted = !causal           ? Graph::Diagonal::none
                                         : keys == queries ? Graph::Diagonal::upper_left
                                                           : Graph::Diagonal::lower_right;
          EXPECT_EQ(graph.diagonal, wanted) << what;
          EXPECT_EQ(graph.backward, backward) << what;
          EXPECT_EQ(graph.deterministic, backward) << what;
          const bool has_lengths = padded || !causal;  // neither 64 nor 100 keys are whole tiles
          EXPECT_EQ(graph.padded, has_lengths) << what;
          EXPECT_EQ(graph.tensors.size(), (backward ? 9U : 5U) + (has_lengths ? 2U : 0U)) << what;
          EXPECT_EQ(graph.at(Graph::log_sum).type, Graph::Type::f32) << what;
          EXPECT_EQ(graph.at(Graph::log_sum).is_output, !backward) << what;
          EXPECT_EQ(graph.at(Graph::out).is_output, !backward) << what;
          for (const Graph::Id id : {Graph::query_lengths, Graph::key_lengths})
            if (has_lengths) {
              EXPECT_EQ(graph.at(id).type, Graph::Type::i32) << what;
              EXPECT_EQ(graph.at(id).extents, (std::array<std::int64_t, 4>{samples, 1, 1, 1})) << what;
            }
        }
}

}  // namespace
}  // namespace mindpipe
